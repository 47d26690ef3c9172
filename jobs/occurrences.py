"""Occurrences: the rows of a job's planned times, those that run and those that do not.

The next occurrence follows from the planned time of the one before, never from "now", and is strictly
later. When it is made is the overlap rule's (jobs/overlaps.py), what passed meanwhile the misfire
policy's (jobs/misfires.py); both are pure, and here their answers become rows. Fires that do not run are
one Cancelled row for each block, with their count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from executions.holding import held, is_held
from executions.ids import execution_id
from executions.planning import NewExecution
from executions.states import State, Trigger
from executions.transitions import Skip
from jobs.listing import settled_jobs
from jobs.misfires import Block, Policy, block_of, settle_since
from jobs.models import Job
from jobs.overlaps import (
    OWN_TERMS,
    QUEUE,
    Following,
    Kind,
    Planned,
    Rules,
    Skipped,
    Terms,
    following_catch_up,
    following_settlement,
)
from jobs.queries import JOBS
from jobs.schedules import Schedule, last_fire, spread_fire
from jobs.spent import TakenFires, fire_id, last_planned, taken, taken_from
from jobs.stored_schedules import planning_schedule, schedule_of
from scheduler_project.kernel.clock import MICROSECOND
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PAGE = 500
RECURRING = ("cron", "every")  # the keys that mark a recurring schedule in its JSON


def occurrence(job: Job, due: datetime) -> NewExecution:
    """The scheduled run of ``job`` that is planned for ``due``."""
    return new_execution(job, due, Trigger.SCHEDULE, check_at=due_time(job, due))


def due_time(job: Job, planned: datetime) -> datetime:
    """When the run that is planned then is due: spread by what the job's jitter gives it."""
    return spread_fire(schedule_of(job), planned, job.id, job.jitter) if job.jitter else planned


def new_execution(job: Job, due: datetime, trigger: Trigger, *, key: str = "", **fields: Any) -> NewExecution:
    """A row for ``job``. A fire has one id, whether it runs at its time or catches up."""
    planned = trigger in {Trigger.SCHEDULE, Trigger.CATCH_UP}
    return NewExecution(
        **{
            "id": fire_id(job, due) if planned else execution_id(job.id, due, trigger, job.shard, key),
            "job_id": job.id,
            "spec_id": job.spec_id,
            "owner_id": job.owner_id,
            "shard": job.shard,
            "trigger": trigger,
            "scheduled_for": due,
            "check_at": None,
            **fields,
        }
    )


def rows_of(job: Job, following: Following, now: datetime) -> list[NewExecution]:
    return [
        skipped_row(job, item, now) if isinstance(item, Skipped) else _waiting_row(job, item, now)
        for item in following
    ]


def _waiting_row(job: Job, planned: Planned, now: datetime) -> NewExecution:
    if planned.kind is Kind.CATCH_UP:
        check_at = held(planned.due)
        return new_execution(
            job, planned.due, Trigger.CATCH_UP, check_at=check_at, catch_up_until=planned.until
        )
    due = due_time(job, planned.due)
    if planned.kind is Kind.PARKED:
        return new_execution(job, planned.due, Trigger.SCHEDULE, check_at=held(due))
    if job.overlap == QUEUE:  # its turn has come only now
        due = max(due, now)
    return new_execution(job, planned.due, Trigger.SCHEDULE, check_at=due)


def skipped_row(job: Job, skipped: Skipped, now: datetime) -> NewExecution:
    return new_execution(
        job,
        skipped.block.first,
        Trigger.SCHEDULE,
        state=State.CANCELLED,
        reason=skipped.reason,
        missed=skipped.block.count,
        message=skipped_message(skipped.block),
        finished_at=now,
    )


def skipped_message(block: Block) -> str:
    first, last = (f"{fire:%Y-%m-%d %H:%M:%S}" for fire in (block.first, block.last))
    return f"{block.count} planned from {first} to {last} UTC did not run"


def skip_of(job: Job, run: UUID, first: datetime, until: datetime, reason: str) -> Skip:
    """End ``run``, which waits, for the fires from ``first``, its own planned time, to ``until``."""
    rest = block_of(planning_schedule(job), first, until)
    block = Block(first, rest.last if rest else first, 1 + (rest.count if rest else 0))
    return Skip(run, reason, skipped_message(block), block.count)


def rules_of(job: Job) -> Rules:
    """InvalidValue where the schedule can no longer be read."""
    return Rules(planning_schedule(job), job.overlap, policy_of(job), settings.PUNCTUAL_MISFIRE_GRACE)


def policy_of(job: Job) -> Policy:
    return Policy(job.misfire, job.misfire_max_age, job.misfire_max_count)


def followed(job: Job, follow: Callable[[Rules], Following], now: datetime) -> list[NewExecution]:
    """The rows that ``follow`` asks for; none, and an error in the log, where the schedule cannot be read."""
    try:
        return rows_of(job, follow(rules_of(job)), now)
    except InvalidValue as error:  # a zone that the tzdata of today no longer has
        logger.error("schedule_unreadable", extra={"job": job.id, "error": error.message})
        return []


def continue_chain(
    job: Job, last_planned: datetime, now: datetime, terms: Terms = OWN_TERMS
) -> list[NewExecution]:
    """The rows of all that was planned after ``last_planned``, for a job of which nothing waits."""

    def follow(given: Rules) -> Following:
        rules = terms.of(given)
        at = _passed(job, rules.schedule, last_planned, max(now, last_planned))
        return following_settlement(
            rules, settle_since(rules.schedule, last_planned, at, rules.grace, rules.policy)
        )

    return followed(job, follow, now)


def _passed(job: Job, schedule: Schedule, last_planned: datetime, now: datetime) -> datetime:
    """Up to where what is planned was due by now: the last fire may be spread to a time that is to come."""
    latest = last_fire(schedule, last_planned, now) if job.jitter else None
    return latest - MICROSECOND if latest is not None and due_time(job, latest) > now else now


def missing_occurrences(shards: Sequence[int], now: datetime) -> list[NewExecution]:
    """The next occurrences of recurring jobs in ``shards`` that have none, planned from their last one."""
    after = UUID(int=0)
    found: list[NewExecution] = []
    with connection.cursor() as cursor:
        while True:
            cursor.execute(JOBS["without_occurrence"], [now, list(shards), list(RECURRING), after, PAGE])
            page = dict(cursor.fetchall())
            found += _mend(page, now)
            if len(page) < PAGE:
                return found
            after = max(page)


def _mend(last: Mapping[UUID, datetime], now: datetime) -> Iterable[NewExecution]:
    jobs = settled_jobs(last)
    rows: list[NewExecution] = []
    for job_id, job in jobs.items():
        rows += continue_chain(job, _reached(job) or last[job_id], now)
    return past_spent(jobs, rows, now)


def _reached(job: Job) -> datetime | None:
    """Up to where an edited job has been planned by the schedule that it has now."""
    if job.schedule_since is None:
        return None
    try:
        return last_planned(job, planning_schedule(job))
    except InvalidValue:  # said by whoever goes on from there
        return None


def past_spent(jobs: Mapping[UUID, Job], rows: Sequence[NewExecution], now: datetime) -> list[NewExecution]:
    """``rows`` without those of fires that are spent: each gives way to the first fire after it that is not.

    Nothing takes its place where its job goes on from a run that is there.
    """
    hit = taken(jobs, [row for row in rows if row.finished_at is None], now)
    known = _known_from(jobs, hit)
    found: list[NewExecution] = []
    for row in rows:
        spent = row.finished_at is None and (row.job_id, row.scheduled_for) in hit
        found += _in_place_of(jobs[row.job_id], row, known[row.job_id], now) if spent else [row]
    return found


def _known_from(jobs: Mapping[UUID, Job], fires: Iterable[tuple[UUID, datetime]]) -> dict[UUID, TakenFires]:
    """What the fires of each job have for rows from the first of these on: asked once a job, not once a fire.

    A run that begins late brings all fires that have passed since, most of which others have brought.
    """
    first: dict[UUID, datetime] = {}
    for job_id, fire in fires:
        first[job_id] = min(fire, first.get(job_id, fire))
    return {job_id: taken_from(jobs[job_id], fire) for job_id, fire in first.items()}


def _in_place_of(job: Job, row: NewExecution, known: TakenFires, now: datetime) -> list[NewExecution]:
    schedule = planning_schedule(job)
    fire: datetime | None = row.scheduled_for
    while fire is not None and (there := known.at(fire)) is not None:
        if row.trigger is Trigger.SCHEDULE and there.carries_chain(job.overlap):
            return []
        fire = schedule.next_fire(max(fire, there.until))
    until = row.catch_up_until
    if until is None or (fire is not None and fire <= until):
        return [] if fire is None else [_at_another_fire(job, row, fire, now)]
    if job.overlap != QUEUE or row.state is State.PAUSED:
        return []
    regular = followed(job, lambda rules: following_catch_up(rules, until, until, now), now)
    return past_spent({job.id: job}, regular, now)


def _at_another_fire(job: Job, row: NewExecution, fire: datetime, now: datetime) -> NewExecution:
    kind = Kind.REGULAR if row.check_at is None or not is_held(row.check_at) else Kind.PARKED
    planned = Planned(fire, kind if row.trigger is Trigger.SCHEDULE else Kind.CATCH_UP, row.catch_up_until)
    new = _waiting_row(job, planned, now)
    return replace(row, id=new.id, scheduled_for=fire, check_at=row.check_at and new.check_at)


def first_unspent(job: Job, fire: datetime | None) -> datetime | None:
    """The first fire from ``fire`` on that is still to be planned for, or waits as it was planned.

    One that fires once, and was cancelled, runs for who gives it to the job again.
    """
    known = TakenFires() if fire is None else taken_from(job, fire)
    schedule = planning_schedule(job)
    while fire is not None and (there := known.at(fire)) is not None and not there.waits_as_planned:
        if not schedule.recurring and there.state is State.CANCELLED:
            return fire
        fire = schedule.next_fire(max(fire, there.until))
    return fire
