"""Resuming a job: what is Paused waits again, and what becomes of the times that passed meanwhile.

``skip``        they do not run; the job goes on with the next one after now
``run-latest``  the latest of them runs
``run-all``     all of them run, one after the other

It is the misfire policy with another choice (jobs/outages.py): what runs later is caught up with.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from executions.entries import Entry
from executions.events import Event
from executions.holding import held
from executions.redirection import LiveRun
from executions.states import HOLDABLE, EventType, Trigger
from executions.transitions import record
from jobs.models import Job, Missed, Overlap
from jobs.occurrences import due_time
from jobs.outages import CHOICES, MissedRun, settle_missed


def resume(job: Job, paused: Sequence[LiveRun], now: datetime) -> tuple[list[Entry], list[LiveRun]]:
    """Let the Paused runs wait again, and settle those whose time has passed.

    The entries of those that wait, and those that the chain of occurrences does not go on from any more.
    """
    missed = [run for run in paused if is_occurrence(run) and run.scheduled_for <= now]
    events = [
        Event(
            type=EventType.RESUMED,
            execution_id=run.id,
            attempt=run.attempt,
            at=now,
            due_at=_due_again(job, run, now),
        )
        for run in paused
    ]
    entries = record(events, now, keep=True, follow=False).entries
    waiting = {run.id for run in paused} - {run.id for run in missed}
    settled = settle_missed(
        [MissedRun(_entry(run, now), run.job_id, run.scheduled_for) for run in missed],
        now,
        CHOICES[Missed(job.on_resume)],
    )
    queued = job.overlap == Overlap.QUEUE and job.on_resume != Missed.SKIP  # the next waits for its turn
    return [
        *[entry for entry in entries if entry.execution_id in waiting],
        *settled,
    ], [] if queued else missed


def is_occurrence(run: LiveRun) -> bool:
    """Whether a run is one that its schedule asks for and that has not been tried yet."""
    return run.trigger is Trigger.SCHEDULE and run.attempt == 1


def due_by_plan(job: Job, run: LiveRun) -> datetime:
    """When an occurrence is due by its planned time."""
    return due_time(job, run.scheduled_for)


def _due_again(job: Job, run: LiveRun, now: datetime) -> datetime:
    """What was moved keeps its time; what had to wait for leave to start has to again."""
    if run.moved_to is not None:
        return max(now, run.moved_to)
    if run.trigger in HOLDABLE and run.attempt == 1:
        return held(run.scheduled_for)
    return max(now, due_by_plan(job, run)) if is_occurrence(run) else now


def _entry(run: LiveRun, due: datetime) -> Entry:
    return Entry(
        execution_id=run.id,
        spec_id=run.spec_id,
        attempt=run.attempt,
        due=due,
        generation=run.generation,
    )
