"""Which planned times of a job are spent, and how far it has been planned.

A fire is spent when the schedule has made a row of it that ran, runs, or will: at its time, later, or when
somebody moved it to; and when somebody cancelled it, or it was skipped; a row that stands for many skipped
fires spends them all. It is never planned again, by whichever schedule. What a new schedule took away
(``rescheduled``) is not spent: it runs where that names it too.

An edit therefore begins an *epoch*: the ids of its fires are others than those of the schedule before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from executions.ids import execution_id, lowest_id
from executions.planning import NewExecution
from executions.states import State, Trigger
from jobs.models import Job, Overlap
from jobs.queries import JOBS
from jobs.schedules import Schedule, count_fires, start_of_last
from jobs.stored_schedules import planning_schedule
from scheduler_project.kernel.clock import to_micros

Fire = tuple[UUID, datetime]  # of a job, the planned time
MILLISECOND = timedelta(milliseconds=1)
LAST_ROWS = 100  # more than anybody moves or cancels ahead of a change
NEAR_ROWS = 20  # more than have rows of their own among the fires of a block


@dataclass(frozen=True, slots=True)
class Taken:
    """The row that a fire has already. ``until``: no fire from this one to then is without a row."""

    planned: datetime
    trigger: Trigger
    state: State
    ended: bool
    until: datetime

    def carries_chain(self, overlap: str) -> bool:
        """Whether it is the next occurrence of its job, or the next is made when it ends."""
        return not self.ended and carries_chain(self.trigger, self.state, overlap)

    @property
    def waits_as_planned(self) -> bool:
        return self.trigger is Trigger.SCHEDULE and self.state in {State.WAITING, State.PAUSED}


@dataclass(frozen=True, slots=True)
class TakenFires:
    """The rows of a job's fires from some time on; ``blocks``: those that stand for more than one."""

    rows: Mapping[datetime, Taken] = field(default_factory=dict)
    blocks: Sequence[Taken] = ()

    def at(self, fire: datetime) -> Taken | None:
        """The row that ``fire`` has, or lies in the block of."""
        return self.rows.get(fire) or next((it for it in self.blocks if it.planned < fire <= it.until), None)


def carries_chain(trigger: Trigger, state: State, overlap: str) -> bool:
    """Whether a run that has not ended is the next occurrence, or the next is made when it ends."""
    if trigger is Trigger.CATCH_UP:
        return overlap == Overlap.QUEUE
    at_the_end = overlap in {Overlap.FORBID, Overlap.QUEUE}
    return trigger is Trigger.SCHEDULE and (state is not State.ACTIVE or at_the_end)


def fire_id(job: Job, planned: datetime) -> UUID:
    """The id of the run of a fire of the schedule in force, at its time or later."""
    epoch = "" if job.schedule_since is None else str(to_micros(job.schedule_since))
    return execution_id(job.id, planned, Trigger.SCHEDULE, job.shard, epoch)


def taken(jobs: Mapping[UUID, Job], rows: Sequence[NewExecution], now: datetime) -> set[Fire]:
    """The fires of ``rows`` that have a row already, of whatever epoch, or lie in the block of one.

    A job that has had one schedule only has no other ids: those are looked up all at once. What is to come
    lies in no block.
    """
    past = [(row.job_id, row.scheduled_for) for row in rows if row.scheduled_for <= now]
    first, edited = set[UUID](), set[Fire]()
    for row in rows:
        if jobs[row.job_id].schedule_since is None:
            first.add(row.id)
        else:
            edited.add((row.job_id, row.scheduled_for))
    return _taken_ids(sorted(first)) | _taken_times(sorted(edited)) | _in_blocks(jobs, past)


def _taken_ids(ids: list[UUID]) -> set[Fire]:
    if not ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(JOBS["taken_ids"], [ids, ids[0], ids[-1]])
        return set(cursor.fetchall())


def _taken_times(fires: Sequence[Fire]) -> set[Fire]:
    if not fires:
        return set()
    bounds = [(*fire, lowest_id(fire[1]), lowest_id(fire[1] + MILLISECOND)) for fire in fires]
    with connection.cursor() as cursor:
        cursor.execute(JOBS["taken_times"], [list(column) for column in zip(*bounds, strict=True)])
        return set(cursor.fetchall())


def _in_blocks(jobs: Mapping[UUID, Job], fires: Iterable[Fire]) -> set[Fire]:
    """Those of ``fires`` that are not the first of a block."""
    by_job: dict[UUID, list[datetime]] = defaultdict(list)
    for job_id, fire in fires:
        by_job[job_id].append(fire)
    blocks = _blocks(jobs, {job_id: (min(of_job), max(of_job)) for job_id, of_job in by_job.items()})
    return {
        (job_id, fire)
        for job_id, of_job in by_job.items()
        for fire in of_job
        if TakenFires(blocks=blocks[job_id]).at(fire)
    }


def taken_from(job: Job, planned: datetime) -> TakenFires:
    """What the fires of a job from ``planned`` on have for rows."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS["taken_from"], [job.id, lowest_id(planned), planned])
        schedule = planning_schedule(job)
        rows = [_taken(job, schedule, row) for row in cursor.fetchall()]
    before = _blocks({job.id: job}, {job.id: (planned, planned)})[job.id]
    return TakenFires(
        {row.planned: row for row in rows}, [*before, *[row for row in rows if row.until > row.planned]]
    )


def _blocks(
    jobs: Mapping[UUID, Job], spans: Mapping[UUID, tuple[datetime, datetime]]
) -> dict[UUID, list[Taken]]:
    """The blocks of some jobs that begin shortly before, or within, a span of time each."""
    found: dict[UUID, list[Taken]] = {job_id: [] for job_id in spans}
    if not spans:
        return found
    bounds = [
        (job_id, lowest_id(first), lowest_id(last + MILLISECOND))
        for job_id, (first, last) in sorted(spans.items())
    ]
    with connection.cursor() as cursor:
        cursor.execute(JOBS["blocks"], [*[list(column) for column in zip(*bounds, strict=True)], NEAR_ROWS])
        for job_id, *row in cursor.fetchall():
            found[job_id].append(_taken(jobs[job_id], planning_schedule(jobs[job_id]), row))
    return found


def _taken(job: Job, schedule: Schedule, row: Sequence[Any]) -> Taken:
    """A row of ``taken_from``, or of a query with the same columns."""
    planned, trigger, state, missed, finished_at = row
    until = _end_of_block(job, schedule, planned, missed, finished_at)
    return Taken(planned, Trigger(trigger), State(state), finished_at is not None, until)


def _end_of_block(
    job: Job, schedule: Schedule, first: datetime, missed: int, made: datetime | None
) -> datetime:
    """An instant at or after the last of ``missed`` fires from ``first`` on, and before the next one.

    ``first`` where there are no others, and where they are of a schedule that is no more.
    """
    if missed < 2 or made is None or (job.schedule_since is not None and made < job.schedule_since):
        return first
    return start_of_last(schedule, first, made, max(count_fires(schedule, first, made) - missed + 1, 0))


def last_planned(job: Job, schedule: Schedule) -> datetime:
    """Up to where ``schedule``, as the job was given it, has been planned: its fires have rows, or runs that
    they are made after.

    What an earlier schedule had planned for later is none of its fires, unless it follows at once.
    """
    with connection.cursor() as cursor:
        cursor.execute(JOBS["last_rows"], [job.id, LAST_ROWS])
        rows: list[tuple[UUID, datetime, datetime | None, int, datetime | None]] = cursor.fetchall()
    own = [
        max(until or planned, _end_of_block(job, schedule, planned, missed, made))
        for identity, planned, until, missed, made in rows
        if identity == fire_id(job, planned)
    ]
    reached = max([job.schedule_since or job.created_at, *own])
    there = {row[1] for row in rows}
    while (fire := schedule.next_fire(reached)) in there:
        reached = fire
    return reached
