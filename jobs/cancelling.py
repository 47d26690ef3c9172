"""Cancelling what a job has under way or waiting, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access.levels import Level
from access.policy import User, require
from executions.redirection import live_runs
from executions.services import Cancelling, cancel_execution
from executions.states import State
from jobs.models import Job
from scheduler_project.kernel.errors import Conflict


@dataclass(frozen=True, slots=True)
class CancelledRun:
    execution_id: UUID
    done: Cancelling


def cancel_runs(job: Job, user: User, now: datetime, *, begun_only: bool = False) -> list[CancelledRun]:
    """Cancel each run of ``job`` that waits, is paused or runs at this moment; in the order of their times.

    ``begun_only``: what waits for its time is left. The job goes on: where its next run was among
    them, the one after that is planned. Forbidden. A run that ends meanwhile is not among the answers.
    """
    require(user, Level.OPERATE, job.owner)
    cancelled = []
    for run in live_runs(job.id):
        if begun_only and run.state is not State.ACTIVE:
            continue
        try:
            done = cancel_execution(run.id, user, now)
        except Conflict:  # it has just ended
            continue
        cancelled.append(CancelledRun(run.id, done))
    return cancelled
