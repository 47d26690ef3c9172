"""Occurrences: the rows of a job's planned times, those that run and those that do not.

The next occurrence follows from the planned time of the one before, never from "now", and is strictly
later. When it is made is the overlap rule's (jobs/overlaps.py), what passed meanwhile the misfire
policy's (jobs/misfires.py); both are pure, and here their answers become rows. Fires that do not run are
one Cancelled row for each block, with their count.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
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
    following_settlement,
)
from jobs.queries import JOBS
from jobs.schedules import Schedule, parse_schedule, spread_fire
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
    identity = Trigger.SCHEDULE if trigger is Trigger.CATCH_UP else trigger
    return NewExecution(
        **{
            "id": execution_id(job.id, due, identity, job.shard, key),
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


def planning_schedule(job: Job) -> Schedule:
    """The schedule by which runs are planned and missed fires counted: from when the job was given it."""
    schedule = schedule_of(job)
    return schedule if job.schedule_since is None else schedule.given_at(job.schedule_since)


def schedule_of(job: Job) -> Schedule:
    """The schedule of a stored job; thousands of jobs share a text, and it is read once."""
    return _parsed(json.dumps(job.schedule, sort_keys=True))


@lru_cache(maxsize=20_000)
def _parsed(text: str) -> Schedule:
    return parse_schedule(json.loads(text))


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
        at = max(now, last_planned)
        return following_settlement(
            rules, settle_since(rules.schedule, last_planned, at, rules.grace, rules.policy)
        )

    return followed(job, follow, now)


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


def _mend(last_planned: Mapping[UUID, datetime], now: datetime) -> Iterable[NewExecution]:
    jobs = settled_jobs(last_planned)
    return [
        new
        for job_id, job in jobs.items()
        for new in past_spent(job, continue_chain(job, last_planned[job_id], now))
    ]


def past_spent(job: Job, rows: Iterable[NewExecution]) -> list[NewExecution]:
    """An occurrence whose run was moved, or has ended before its time, gives way to the one after it."""
    found = []
    for row in rows:
        fire: datetime | None = row.scheduled_for
        if row.trigger is Trigger.SCHEDULE and row.state is State.WAITING:
            fire = unspent(job, row.scheduled_for, Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.MOVED)
        if fire is not None:
            found.append(row if fire == row.scheduled_for else _at_another_fire(job, row, fire))
    return found


def _at_another_fire(job: Job, row: NewExecution, fire: datetime) -> NewExecution:
    new = occurrence(job, fire)
    parked = row.check_at is not None and is_held(row.check_at)
    return replace(new, check_at=held(due_time(job, fire))) if parked else new


def unspent(job: Job, due: datetime, *triggers: Trigger) -> datetime | None:
    """The first fire from ``due`` on that is still to be planned for."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS["spent"], [job.id, due - MICROSECOND, [str(trigger) for trigger in triggers]])
        spent = {row[0] for row in cursor.fetchall()}
    fire: datetime | None = due
    while fire is not None and fire in spent:
        fire = schedule_of(job).next_fire(fire)
    return fire
