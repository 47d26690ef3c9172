"""Resuming a job: what is Paused waits again, and what becomes of the times that passed meanwhile.

``skip``        they do not run; the job goes on with the next one after now
``run-latest``  the latest of them runs
``run-all``     all of them run, one after the other

It is the misfire policy with another choice (jobs/outages.py): what runs later is caught up with. The
choice is also for what an earlier outage or pause had left to catch up with: with ``skip`` it is one skipped
row, else it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executions.entries import Entry
from executions.events import Event
from executions.holding import held
from executions.models import Execution
from executions.redirection import LiveRun
from executions.states import HOLDABLE, EventType, Trigger
from executions.transitions import record, skip_missed
from jobs.models import Job, Missed
from jobs.occurrences import due_time, skip_of
from jobs.outages import SKIPPED_PAUSED, MissedRun, chosen, settle_missed


@dataclass(frozen=True, slots=True)
class Resumed:
    """The entries of what waits, and the runs that the chain does not go on from any more (``over``).

    ``settled``: runs were missed, and what follows them has been made.
    """

    entries: list[Entry]
    over: list[LiveRun]
    settled: bool


def resume(job: Job, paused: Sequence[LiveRun], now: datetime, *, parked: bool) -> Resumed:
    """Let the Paused runs wait again, and settle those whose time, spread by the jitter, has passed.

    ``parked``: the next occurrence is held for a run that is under way.
    """
    missed = [run for run in paused if is_occurrence(run) and due_by_plan(job, run) <= now]
    events = [
        Event(
            type=EventType.RESUMED,
            execution_id=run.id,
            attempt=run.attempt,
            at=now,
            due_at=_due_again(job, run, now, parked=parked),
        )
        for run in paused
    ]
    entries = record(events, now, keep=True, follow=False).entries
    skipped = _skip_catch_ups(job, paused, now)
    waiting = {run.id for run in paused} - {run.id for run in missed} - skipped
    settled = settle_missed(
        [MissedRun(_entry(run, now), run.job_id, run.scheduled_for) for run in missed],
        now,
        chosen(job, parked=parked),
    )
    return Resumed(
        entries=[*[entry for entry in entries if entry.execution_id in waiting], *settled],
        over=[*missed, *[run for run in paused if run.id in skipped]],
        settled=bool(missed),
    )


def is_occurrence(run: LiveRun) -> bool:
    """Whether a run is one that its schedule asks for and that has not been tried yet."""
    return run.trigger is Trigger.SCHEDULE and run.attempt == 1


def due_by_plan(job: Job, run: LiveRun) -> datetime:
    """When an occurrence is due by its planned time."""
    return due_time(job, run.scheduled_for)


def _skip_catch_ups(job: Job, paused: Sequence[LiveRun], now: datetime) -> set[UUID]:
    """Those that were to catch up and now are not; each stands for all that it would have gone on with."""
    if job.on_resume != Missed.SKIP:
        return set()
    runs = [run for run in paused if run.trigger is Trigger.CATCH_UP and run.attempt == 1]
    rows = Execution.objects.filter(id__in=[run.id for run in runs])
    untils = dict(rows.values_list("id", "catch_up_until"))
    return skip_missed(
        [
            skip_of(job, run.id, run.scheduled_for, untils.get(run.id) or run.scheduled_for, SKIPPED_PAUSED)
            for run in runs
        ],
        now,
    )


def _due_again(job: Job, run: LiveRun, now: datetime, *, parked: bool) -> datetime:
    """What was moved keeps its time; what had to wait for leave, or for another run to end, has to again."""
    if run.moved_to is not None:
        return max(now, run.moved_to)
    if run.trigger in HOLDABLE and run.attempt == 1:
        return held(run.scheduled_for)
    if not is_occurrence(run):
        return now
    return held(due_by_plan(job, run)) if parked else max(now, due_by_plan(job, run))


def _entry(run: LiveRun, due: datetime) -> Entry:
    return Entry(
        execution_id=run.id,
        spec_id=run.spec_id,
        attempt=run.attempt,
        due=due,
        generation=run.generation,
    )
