"""Backfills: the fires of a span of the past, run as if they were due now.

Each is a run of its own, ``backfill``, which waits held until the beat gives it leave
(jobs/catchups.py): at most ``most_active`` of the job at once, at the limited rate of all that is made up
for. Its id follows from the job and the fire, so that asking twice makes nothing new. The regular chain
knows nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from access.audit import About, note
from access.levels import Level
from access.policy import User, require
from executions.holding import held
from executions.models import Execution
from executions.planning import NewExecution
from executions.states import Trigger
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import new_execution
from jobs.schedules import count_fires, fires_between
from jobs.stored_schedules import schedule_of
from scheduler_project.kernel.clock import MICROSECOND
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidFields

MAX_FIRES = 1000
MAX_ACTIVE = 100


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """The fires in [since, until); ``most_active``: how many may be under way at once."""

    since: datetime
    until: datetime
    most_active: int = 1
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class BackfilledRun:
    """``new``: made by this request, or, of a dry run, to be made."""

    execution_id: UUID
    scheduled_for: datetime
    new: bool


def backfill(job: Job, asked: BackfillRequest, user: User, now: datetime) -> list[BackfilledRun]:
    """Make a run of each fire that has none of this kind yet; a dry run only says which.

    Forbidden: not the caller's team. InvalidFields: a span that ends before it begins or in the future,
    begins before what is kept, or has more than MAX_FIRES.
    """
    require(user, Level.OPERATE, job.owner)
    _check(job, asked, now)
    fires = fires_between(schedule_of(job), asked.since - MICROSECOND, asked.until - MICROSECOND, MAX_FIRES)
    runs = [_run(job, fire, asked.most_active) for fire in fires]
    with transaction.atomic():
        new = _missing(runs) if asked.dry_run else {entry.execution_id for entry in insert(runs)}
        if new and not asked.dry_run:
            said = {"from": _text(asked.since), "to": _text(asked.until), "runs": len(new)}
            note(job, user, "backfilled", None, said, About(team_id=job.owner_id, job_id=job.id))
    return [BackfilledRun(run.id, run.scheduled_for, run.id in new) for run in runs]


def _run(job: Job, fire: datetime, most_active: int) -> NewExecution:
    return new_execution(job, fire, Trigger.BACKFILL, check_at=held(fire), most_active=most_active)


def _missing(runs: list[NewExecution]) -> set[UUID]:
    if not runs:
        return set()
    ids = sorted(run.id for run in runs)
    found = Execution.objects.filter(id__in=ids, id__gte=ids[0], id__lte=ids[-1])
    return set(ids) - set(found.values_list("id", flat=True))


def _check(job: Job, asked: BackfillRequest, now: datetime) -> None:
    errors: dict[str, list[str]] = {}
    oldest = now - settings.PUNCTUAL_RETENTION
    if asked.since >= asked.until:
        errors["to"] = [f"{_text(asked.until)} is not later than {_text(asked.since)} (from)."]
    elif asked.until > now:
        errors["to"] = [f"{_text(asked.until)} is in the future: what is due then runs by itself."]
    if asked.since < oldest:
        kept = format_duration(settings.PUNCTUAL_RETENTION)
        errors["from"] = [
            f"{_text(asked.since)} is too long ago: runs are kept for {kept} (PUNCTUAL_RETENTION),"
            f" so the earliest is {_text(oldest)}."
        ]
    if errors:
        raise InvalidFields(errors)
    count = count_fires(schedule_of(job), asked.since - MICROSECOND, asked.until - MICROSECOND)
    if count > MAX_FIRES:
        raise InvalidFields(
            {"to": [f"{count:,} fires lie in this span; one request makes at most {MAX_FIRES:,}. Divide it."]}
        )


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
