"""Runs that somebody asks for, beside a job's schedule: run now, with parameters of its own.

A caller that is not told whether its request arrived makes it again, with the same idempotency key:
it gets the run that the first request made. A key counts for one job, and as long as runs are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from access.audit import About, note
from access.levels import Level
from access.policy import User, require
from executions.runspecs import Spec
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import insert
from jobs.models import Job, RequestedRun
from jobs.occurrences import new_execution
from jobs.snapshots import overridden, store_spec
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue


@dataclass(frozen=True, slots=True)
class RunRequest:
    """``parameters`` in place of the job's of the same name; ``key``: an idempotency key, or none."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def digest(self) -> bytes:
        text = json.dumps(self.parameters, sort_keys=True, ensure_ascii=False)
        return blake2b(text.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class StartedRun:
    """``made``: by this request; otherwise by an earlier one with the same key.

    ``waits_for_redis``: Redis did not answer, and it starts when a beat has found its row.
    """

    execution_id: UUID
    made: bool
    waits_for_redis: bool = False

    @property
    def when(self) -> str:
        """When it starts, as far as is known."""
        return "due now; it starts when Redis answers again" if self.waits_for_redis else "due now"


def run_job(job: Job, user: User, now: datetime, asked: RunRequest | None = None) -> StartedRun:
    """Run a job now, beside its schedule.

    Forbidden: not the caller's team. InvalidFields: parameters that no job may have. Conflict: the
    key was used for another request.
    """
    require(user, Level.OPERATE, job.owner)
    asked = asked or RunRequest()
    with transaction.atomic():
        new = new_execution(
            job, now, Trigger.MANUAL, key=asked.key, spec_id=_spec_of(job, asked.parameters), check_at=now
        )
        if asked.key and (earlier := _claim_key(job, asked, new.id, now)) is not None:
            return StartedRun(earlier, made=False)
        entries = insert([new])
        said = {"executionId": str(new.id), "parameters": asked.parameters}
        note(job, user, "run", None, said, About(team_id=job.owner_id, job_id=job.id))
    push = push_due_soon(entries, now)
    return StartedRun(new.id, made=True, waits_for_redis=push.lost)


def _spec_of(job: Job, parameters: Mapping[str, Any]) -> UUID:
    """The job's snapshot, or one of the run's own where its parameters are others."""
    if not parameters:
        return job.spec_id
    try:
        return store_spec(overridden(Spec.from_json(job.spec.body), parameters)).id
    except InvalidValue as error:
        raise InvalidFields({"parameters": [error.message]}) from error


def _claim_key(job: Job, asked: RunRequest, execution_id: UUID, now: datetime) -> UUID | None:
    """Note that the key stands for this run; the run that it stands for already, where it does."""
    known = RequestedRun.objects.filter(job=job)
    known.filter(created_at__lt=now - settings.PUNCTUAL_RETENTION).delete()
    values = {"digest": asked.digest, "execution_id": execution_id, "created_at": now}
    row, made = RequestedRun.objects.get_or_create(job=job, key=asked.key, defaults=values)
    if made:
        return None
    if bytes(row.digest) != asked.digest:
        raise Conflict(
            f"The Idempotency-Key {asked.key!r} was used at {row.created_at:%Y-%m-%dT%H:%M:%SZ} for a run"
            " with other parameters. Another request needs another key."
        )
    return row.execution_id
