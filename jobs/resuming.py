"""Resuming a job: what is Paused waits again, and what becomes of the times that passed meanwhile.

``skip``        they do not run; the job goes on with the next one after now
``run-latest``  the latest of them runs now
``run-all``     all of them run
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from executions.entries import Entry
from executions.events import Event
from executions.redirection import LiveRun
from executions.states import EventType, Trigger
from executions.transitions import record
from jobs.models import Job, Missed
from jobs.occurrences import occurrence

SKIPPED_PAUSED = "skipped_paused"


def resume(job: Job, paused: Sequence[LiveRun], now: datetime) -> tuple[list[Entry], list[LiveRun]]:
    """Let the Paused runs wait again, or end them where their time has passed and is skipped.

    The entries of those that wait, and those that were ended.
    """
    missed = [run for run in paused if is_occurrence(run) and run.scheduled_for <= now]
    waiting = [run for run in paused if run not in missed]
    if job.on_resume != Missed.SKIP:
        missed, waiting = [], list(paused)
    events = [
        *[_event(EventType.CANCELLED, run, now, SKIPPED_PAUSED) for run in missed],
        *[_event(EventType.RESUMED, run, now, due_at=_due_again(job, run, now)) for run in waiting],
    ]
    return record(events, now, keep=True, follow=False).entries, missed


def is_occurrence(run: LiveRun) -> bool:
    """Whether a run is one that its schedule asks for and that has not been tried yet."""
    return run.trigger is Trigger.SCHEDULE and run.attempt == 1


def due_by_plan(job: Job, run: LiveRun) -> datetime:
    """When an occurrence is due by its planned time."""
    due = occurrence(job, run.scheduled_for).check_at
    assert due is not None  # noqa: S101 -- an occurrence waits
    return due


def _due_again(job: Job, run: LiveRun, now: datetime) -> datetime:
    return max(now, due_by_plan(job, run)) if is_occurrence(run) else now


def _event(
    kind: EventType, run: LiveRun, now: datetime, reason: str = "", due_at: datetime | None = None
) -> Event:
    return Event(type=kind, execution_id=run.id, attempt=run.attempt, at=now, reason=reason, due_at=due_at)
