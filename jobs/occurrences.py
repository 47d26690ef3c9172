"""Occurrences: which execution a job gets next.

The next occurrence follows from the planned time of the one before, never from "now", and
is strictly later. With the default overlap rule (forbid) it is made when the run before ends:

    planned          started              finished                    next
    ───┼────x────x──────┼──────x─────x───────┼──────────────────────────┼──▶
            └ misfire ──┘      └── overlap ──┘

Fires that passed before the run started are a misfire (one late run stands for them), fires
while it ran are an overlap. Each block of them is one row, Cancelled, with its count.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection

from executions.ids import execution_id
from executions.planning import EndedRun, NewExecution
from executions.states import State, Trigger
from jobs.listing import jobs_to_plan
from jobs.models import Job
from jobs.queries import JOBS
from jobs.schedules import Schedule, count_fires, parse_schedule
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PAGE = 500
SKIPPED_OVERLAP = "skipped_overlap"
SKIPPED_MISFIRE = "skipped_misfire"
RECURRING = ("cron", "every")  # the keys that mark a recurring schedule in its JSON


def plan(ended: Sequence[EndedRun], now: datetime) -> list[NewExecution]:
    """The next occurrences of the jobs whose scheduled runs have ended (executions/planning.py)."""
    scheduled = [run for run in ended if run.trigger is Trigger.SCHEDULE]
    jobs = jobs_to_plan({run.job_id for run in scheduled})
    return [new for run in scheduled if run.job_id in jobs for new in _follow(jobs[run.job_id], run, now)]


def _follow(job: Job, run: EndedRun, now: datetime) -> list[NewExecution]:
    try:
        schedule = schedule_of(job)
    except InvalidValue as error:  # a zone that the tzdata of today no longer has
        logger.error("schedule_unreadable", extra={"job": job.id, "error": error.message})
        return []
    started = min(max(run.started_at or run.finished_at, run.scheduled_for), run.finished_at)
    blocks = [
        _skipped(job, schedule, (run.scheduled_for, started), SKIPPED_MISFIRE, now),
        _skipped(job, schedule, (started, run.finished_at), SKIPPED_OVERLAP, now),
    ]
    following = schedule.next_fire(max(run.finished_at, run.scheduled_for))
    if not schedule.recurring or following is None:
        return [block for block in blocks if block]
    return [*[block for block in blocks if block], occurrence(job, following)]


def _skipped(
    job: Job, schedule: Schedule, between: tuple[datetime, datetime], reason: str, now: datetime
) -> NewExecution | None:
    """One row for the fires in (from, until] that did not run; None where there were none."""
    after, until = between
    first = schedule.next_fire(after) if schedule.recurring and until > after else None
    if first is None or first > until:
        return None
    count = count_fires(schedule, after, until)
    span = f"{first:%Y-%m-%d %H:%M:%S} to {until:%Y-%m-%d %H:%M:%S} UTC"
    return new_execution(
        job,
        first,
        Trigger.SCHEDULE,
        state=State.CANCELLED,
        reason=reason,
        missed=count,
        message=f"{count} planned from {span} did not run",
        finished_at=now,
    )


def occurrence(job: Job, due: datetime) -> NewExecution:
    """The scheduled run of ``job`` that is planned for ``due``."""
    return new_execution(job, due, Trigger.SCHEDULE, check_at=due)


def new_execution(job: Job, due: datetime, trigger: Trigger, **fields: Any) -> NewExecution:
    return NewExecution(
        **{
            "id": execution_id(job.id, due, trigger, job.shard),
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


def schedule_of(job: Job) -> Schedule:
    """The schedule of a stored job; thousands of jobs share a text, and it is read once."""
    return _parsed(json.dumps(job.schedule, sort_keys=True))


@lru_cache(maxsize=20_000)
def _parsed(text: str) -> Schedule:
    return parse_schedule(json.loads(text))


def missing_occurrences(shards: Sequence[int], now: datetime) -> list[NewExecution]:
    """The next occurrences of recurring jobs in ``shards`` that have none, planned from their last one."""
    found, after = [], UUID(int=0)
    with connection.cursor() as cursor:
        while True:
            cursor.execute(JOBS["without_occurrence"], [list(shards), list(RECURRING), after, PAGE])
            page = dict(cursor.fetchall())
            found += _mend(page, now)
            if len(page) < PAGE:
                return found
            after = max(page)


def _mend(last_planned: Mapping[UUID, datetime], now: datetime) -> list[NewExecution]:
    broken = [
        EndedRun(
            id=job_id,
            job_id=job_id,
            trigger=Trigger.SCHEDULE,
            scheduled_for=planned,
            state=State.CANCELLED,
            started_at=max(now, planned),
            finished_at=max(now, planned),
        )
        for job_id, planned in last_planned.items()
    ]
    return plan(broken, now)
