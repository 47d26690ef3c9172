"""Parked occurrences: the next run of a job, held until another run of it has ended.

Parked are the next occurrence of a job with ``replace`` while a run is under way, and of one with
``forbid`` or ``replace`` while a run of it catches up. The end of that run releases them, in the same
transaction; ``relieve_parked`` cancels the runs whose successor is due.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from access.policy import System
from executions.entries import Entry
from executions.holding import FIRST_HELD, due_when_released, held, is_held
from executions.planning import NewExecution
from executions.redirection import LiveRun, Redirection, live_run_of, redirect, send_again, withdraw
from executions.scheduling import push_due_soon
from executions.services import cancel_execution
from executions.states import State, Trigger
from executions.transitions import insert, postpone, skip_missed
from jobs.listing import settled_jobs
from jobs.models import Job
from jobs.occurrences import followed, past_spent, skip_of
from jobs.overlaps import FORBID, REPLACE, SKIPPED_OVERLAP, Following, Planned, Rules
from jobs.queries import CATCHUPS
from scheduler_project.kernel.errors import Conflict, NotFound

logger = logging.getLogger(__name__)

REPLACED = "replaced"


class Parked(NamedTuple):
    """A row of the queries ``parked`` and ``parked_due``.

    ``busy``: how many runs it waits for; ``unasked``: those that nobody has asked to stop yet.
    """

    id: UUID
    spec_id: UUID
    attempt: int
    generation: int
    job_id: UUID
    scheduled_for: datetime
    check_at: datetime
    overlap: str
    busy: int
    unasked: list[UUID] | None

    @property
    def due(self) -> datetime:
        return due_when_released(self.check_at)


def parks_next(job: Job, run: LiveRun) -> bool:
    """Whether the next occurrence of ``job`` is held until ``run`` has ended."""
    if job.overlap not in (FORBID, REPLACE) or run.trigger not in (Trigger.SCHEDULE, Trigger.CATCH_UP):
        return False
    given_leave = run.trigger is Trigger.CATCH_UP and run.check_at is not None and not is_held(run.check_at)
    sent = run.waits and (run.queued_at is not None or given_leave)
    return run.state is State.ACTIVE or run.attempt > 1 or sent


def release_parked(ends: Mapping[UUID, datetime], now: datetime) -> list[NewExecution]:
    """Release what was parked for runs that have ended: by job, when; within the caller's transaction.

    A fire that fell into a run of a job with ``forbid`` is skipped; returned are the next occurrences of
    those jobs.
    """
    if not ends:
        return []
    free = [row for row in _query("parked", jobs=list(ends)) if not row.busy]
    fallen = [row for row in free if row.overlap != REPLACE and row.due <= ends[row.job_id]]
    _release([row for row in free if row not in fallen], now)
    return _skip(fallen, ends, now)


def relieve_parked(shards: Sequence[int], now: datetime) -> int:
    """Look at the parked occurrences that are due; how many there were.

    What one with ``replace`` waits for is cancelled. One that waits for nothing (the job has been changed
    meanwhile) is released, unless it has been due for longer than the grace.
    """
    rows = _query("parked_due", shards=list(shards), until=held(now))
    for row in rows:
        if row.overlap == REPLACE:
            for run in row.unasked or []:
                _replace(run, row, now)
    free = {row.job_id: now - settings.PUNCTUAL_MISFIRE_GRACE for row in rows if not row.busy}
    with transaction.atomic():
        entries = insert(release_parked(free, now))
    push_due_soon(entries, now)
    return len(rows)


def park(job_ids: Sequence[UUID], now: datetime) -> set[UUID]:
    """Hold the next occurrences of jobs of which a run is to catch up. In no transaction.

    The jobs whose next occurrence has begun meanwhile.
    """
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS["next_waiting"], {"jobs": list(job_ids), "first": FIRST_HELD})
        runs = [live_run_of(row) for row in cursor.fetchall()]
    withdrawn = withdraw(runs, now)  # it may be in the window already
    changes = [
        (withdrawn.runs.get(run.id, run), Redirection(spec_id=run.spec_id, check_at=held(run.check_at)))
        for run in runs
        if run.check_at is not None and run.id not in withdrawn.begun
    ]
    redirect(changes)
    send_again(withdrawn, [], now)
    return {run.job_id for run in runs if run.id in withdrawn.begun}


def _replace(run: UUID, by: Parked, now: datetime) -> None:
    planned = f"{by.scheduled_for:%Y-%m-%dT%H:%M:%SZ}"
    try:
        cancel_execution(run, System(f"the run planned for {planned}"), now, REPLACED)
    except (Conflict, NotFound):  # it has ended meanwhile
        return
    logger.info("run_replaced", extra={"execution": run, "by": by.id})


def _release(rows: Sequence[Parked], now: datetime) -> None:
    won = postpone([(row.id, row.check_at, row.due) for row in rows])
    push_due_soon([_entry(row) for row in rows if row.id in won], now)


def _skip(rows: Sequence[Parked], ends: Mapping[UUID, datetime], now: datetime) -> list[NewExecution]:
    jobs = settled_jobs({row.job_id for row in rows})
    skips, new = [], []
    for row in rows:
        job, end = jobs[row.job_id], ends[row.job_id]
        skips.append(skip_of(job, row.id, row.scheduled_for, end, SKIPPED_OVERLAP))
        new += followed(job, partial(_next_regular, max(end, row.scheduled_for)), now)
    skip_missed(skips, now)
    return past_spent(jobs, new, now)


def _next_regular(after: datetime, rules: Rules) -> Following:
    fire = rules.schedule.next_fire(after)
    return [] if fire is None else [Planned(fire)]


def _entry(row: Parked) -> Entry:
    return Entry(
        execution_id=row.id,
        spec_id=row.spec_id,
        attempt=row.attempt,
        due=row.due,
        generation=row.generation,
    )


def _query(name: str, **parameters: Any) -> list[Parked]:
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS[name], {"first": FIRST_HELD, **parameters})
        return [Parked(*row) for row in cursor.fetchall()]
