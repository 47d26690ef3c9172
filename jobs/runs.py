"""Runs that somebody asks for, beside a job's schedule: run now, with parameters of its own.

A caller that is not told whether its request arrived makes it again, with the same idempotency key:
it gets the run that the first request made. A key counts for one job, and as long as runs are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from executions.policy import User, require_member
from executions.runspecs import Spec
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import insert
from jobs.definitions import read_field
from jobs.models import Job, RequestedRun
from jobs.occurrences import new_execution
from jobs.snapshots import store_spec
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue

MAX_KEY = 255
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


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
    """``made``: by this request; otherwise by an earlier one with the same key."""

    execution_id: UUID
    made: bool


def read_key(text: str) -> str:
    """An idempotency key as it may be. InvalidFields otherwise."""
    if not _KEY.fullmatch(text):
        raise InvalidFields(
            {"Idempotency-Key": [f"1 to {MAX_KEY} visible ASCII characters are needed, no blanks."]}
        )
    return text


def run_job(job: Job, user: User, now: datetime, asked: RunRequest | None = None) -> StartedRun:
    """Run a job now, beside its schedule.

    Forbidden: not the caller's team. InvalidFields: parameters that no job may have. Conflict: the
    key was used for another request.
    """
    require_member(user, job.owner)
    asked = asked or RunRequest()
    with transaction.atomic():
        new = new_execution(
            job, now, Trigger.MANUAL, key=asked.key, spec_id=_spec_of(job, asked.parameters), check_at=now
        )
        if asked.key and (earlier := _claim_key(job, asked, new.id, now)) is not None:
            return StartedRun(earlier, made=False)
        entries = insert([new])
    push_due_soon(entries, now)
    return StartedRun(new.id, made=True)


def _spec_of(job: Job, parameters: Mapping[str, Any]) -> UUID:
    """The job's snapshot, or one of the run's own where its parameters are others."""
    if not parameters:
        return job.spec_id
    spec = Spec.from_json(job.spec.body)
    try:
        own = read_field("parameters", {**spec.parameters, **parameters})
    except InvalidValue as error:
        raise InvalidFields({"parameters": [error.message]}) from error
    return store_spec(replace(spec, parameters=own)).id


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
