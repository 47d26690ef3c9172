"""The latest runs of one job, as they are drawn: a cell a run, and how long each took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID

from executions.listing import Selection, listed
from executions.models import Execution
from executions.states import TERMINAL, State
from jobs.models import Job

SHOWN = 60


@dataclass(frozen=True, slots=True)
class PastRun:
    """``length``: of its latest attempt, to now where it runs; None where none has begun."""

    id: UUID
    state: State
    scheduled_for: datetime
    attempt: int
    reason: str
    length: timedelta | None


@dataclass(frozen=True, slots=True)
class History:
    """Oldest first. ``usual`` and ``longest``: of those that completed normally; None without any."""

    runs: list[PastRun]
    usual: timedelta | None
    longest: timedelta | None


def history_of(job: Job, now: datetime, limit: int = SHOWN) -> History:
    """The ``limit`` runs of ``job`` that are due latest, also what waits: from the index on (job, id)."""
    runs = [_past(run, now) for run in reversed(listed(Selection(job_id=job.id), limit=limit).rows)]
    lengths = [run.length for run in runs if run.length is not None and run.state == State.COMPLETED_NORMALLY]
    usual = timedelta(seconds=median(length.total_seconds() for length in lengths)) if lengths else None
    return History(runs, usual, max(lengths, default=None))


def _past(run: Execution, now: datetime) -> PastRun:
    state = State(run.state)
    length = None
    if run.started_at is not None and (state in TERMINAL or state == State.ACTIVE):
        length = (run.finished_at or now) - run.started_at
    return PastRun(run.id, state, run.scheduled_for, run.attempt, run.reason, length)
