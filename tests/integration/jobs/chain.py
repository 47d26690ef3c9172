"""A job whose runs end, one after the other: what is really planned for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User

from executions.models import Execution
from executions.transitions import record
from jobs.definitions import read_definition
from jobs.models import Job
from jobs.services import create_job
from tests.integration.making import COMPLETED, STARTED, said

SHORT = timedelta(milliseconds=100)


def new_job(schedule: Any, now: datetime, **fields: Any) -> Job:
    root, _ = User.objects.get_or_create(username="root", is_superuser=True)
    Group.objects.get_or_create(name="team")
    given = {"name": "nightly", "type": "Script", "command": "true", "schedule": schedule, "owner": "team"}
    return create_job(read_definition({**given, **fields}), root, now).job


def waiting_run(job: Job) -> Execution:
    return Execution.objects.get(job_id=job.id, state="Waiting")


def run_to_end(job: Job, now: datetime, most: int) -> list[datetime]:
    """The planned times of at most ``most`` runs, each of which begins when it is due and is short."""
    planned: list[datetime] = []
    while len(planned) < most and (run := Execution.objects.filter(job_id=job.id, state="Waiting").first()):
        planned.append(run.scheduled_for)
        begun = max(run.scheduled_for, now)
        record([said(STARTED, run.id, at=begun)], begun)
        record([said(COMPLETED, run.id, at=begun + SHORT, started_at=begun, exit_code=0)], begun + SHORT)
    return planned
