"""The border between two schedules of a job: the instant at which the change was settled.

    old schedule                        │ new schedule
    ──┼───────x───────x───────x─────────┼────────────┼────┼────┼──▶
    ran      └ one row, rescheduled ──┘ schedule_since

The new schedule has no fire before it: none is run, caught up with or counted (``planning_schedule``). The
fires of the old one that have neither run nor a row by then are one Cancelled row, with their count.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from executions.models import Execution, RunSpec
from executions.redirection import LiveRun
from executions.states import Trigger
from executions.transitions import insert
from jobs.misfires import Block, block_of
from jobs.models import Job
from jobs.occurrences import skipped_row
from jobs.overlaps import Skipped
from jobs.schedules import Schedule, parse_schedule
from jobs.spent import last_planned
from scheduler_project.kernel.clock import MICROSECOND
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

RESCHEDULED = "rescheduled"


def draw_border(job: Job, spec_before: UUID, runs: Sequence[LiveRun], now: datetime) -> None:
    """Let the schedule of ``job`` count from now on; within the transaction that settles the change.

    ``runs``: those that have not ended; ``spec_before``: the snapshot with the schedule of before.
    """
    before = _read(job, RunSpec.objects.get(id=spec_before).body["schedule"])
    if before is not None and before.recurring:
        blocks = _open_blocks(before, *_reaches(job, before, runs), now)
        rows = [skipped_row(job, Skipped(block, RESCHEDULED), now) for block in blocks]
        insert([replace(row, spec_id=spec_before) for row in rows])
    # Of two edits at one instant the later has fires, and ids, of its own.
    job.schedule_since = now + MICROSECOND if job.schedule_since == now else now
    Job.objects.filter(id=job.id).update(schedule_since=job.schedule_since)


def _read(job: Job, schedule: Any) -> Schedule | None:
    """The schedule as it counted until now; None where it can no longer be read."""
    try:
        read = parse_schedule(schedule)
    except InvalidValue as error:
        logger.error("schedule_unreadable", extra={"job": job.id, "error": error.message})
        return None
    return read if job.schedule_since is None else read.given_at(job.schedule_since)


def _open_blocks(
    before: Schedule, catch_ups: Iterable[tuple[datetime, datetime]], chain: datetime, now: datetime
) -> Iterator[Block]:
    """What is behind the runs that catch up, and behind the last of the chain."""
    for after, until in [*catch_ups, (chain, now)]:
        block = block_of(before, after, until)
        if block is not None:
            yield block


def _reaches(
    job: Job, before: Schedule, runs: Sequence[LiveRun]
) -> tuple[list[tuple[datetime, datetime]], datetime]:
    """From where to where the runs that catch up would go on, and up to where fires have a row or a run."""
    catch_ups = _catch_ups([run.id for run in runs if run.trigger is Trigger.CATCH_UP])
    known = [run.scheduled_for for run in runs if run.trigger is Trigger.SCHEDULE]
    known += [until for _, until in catch_ups]
    return catch_ups, max([*known, last_planned(job, before)])


def _catch_ups(ids: Sequence[UUID]) -> list[tuple[datetime, datetime]]:
    if not ids:
        return []
    runs = Execution.objects.filter(id__in=ids, id__gte=min(ids), id__lte=max(ids))
    found = runs.values_list("scheduled_for", "catch_up_until")
    return [(planned, until or planned) for planned, until in found]
