"""Specs and executions for tests that need no job."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from executions.entries import Entry
from executions.events import Event
from executions.ids import execution_id
from executions.models import RunSpec
from executions.planning import NewExecution
from executions.runspecs import Spec
from executions.states import EventType, Trigger
from executions.transitions import insert
from scheduler_project.kernel.clock import utcnow

SPEC = Spec(
    job_id="00000000-0000-4000-8000-000000000001",
    job_name="nightly",
    owner="team",
    owner_id=1,
    type="Script",
    command="true",
    schedule={"at": "2026-11-30T02:00:00Z"},
)


def stored_spec(**fields: Any) -> Spec:
    spec = replace(SPEC, **fields)
    RunSpec.objects.get_or_create(id=spec.id, defaults={"job_id": spec.job_id, "body": spec.to_json()})
    return spec


def new_run(spec: Spec, due: datetime | None = None, shard: int = 3, **fields: Any) -> NewExecution:
    """A run of a job of its own, Waiting for ``due`` (now)."""
    due, job = due or utcnow(), uuid4()
    return NewExecution(
        **{
            "id": execution_id(job, due, "schedule", shard),
            "job_id": job,
            "spec_id": spec.id,
            "owner_id": 1,
            "shard": shard,
            "trigger": Trigger.SCHEDULE,
            "scheduled_for": due,
            "check_at": due,
            **fields,
        }
    )


def make_runs(number: int, spec: Spec | None = None, **fields: Any) -> list[UUID]:
    """Rows in the database, Waiting."""
    spec = spec or stored_spec()
    new = [new_run(spec, **fields) for _ in range(number)]
    insert(new)
    return [item.id for item in new]


def make_run(spec: Spec | None = None, **fields: Any) -> UUID:
    return make_runs(1, spec, **fields)[0]


def entry_for(run: UUID, due: datetime, spec: Spec = SPEC, **fields: Any) -> Entry:
    return Entry(**{"execution_id": run, "spec_id": spec.id, "attempt": 1, "due": due, **fields})


def said(kind: EventType, run: UUID, attempt: int = 1, **fields: Any) -> Event:
    return Event(**{"type": kind, "execution_id": run, "attempt": attempt, "at": utcnow(), **fields})


STARTED, COMPLETED, FAILED = EventType.STARTED, EventType.COMPLETED, EventType.FAILED
LOST, QUEUED, CANCELLED = EventType.LOST, EventType.QUEUED, EventType.CANCELLED
