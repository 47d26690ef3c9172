"""Trying an ended run again: the same work once more, as a run of its own.

What is to run now is for the app ``jobs`` to say, which registers itself here when it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from access.levels import Level
from access.policy import User
from executions.listing import require_run
from executions.models import Execution
from executions.states import TERMINAL
from scheduler_project.kernel.errors import Conflict

Retrier = Callable[[Execution, User, datetime], UUID]

_retriers: list[Retrier] = []


def register_retrier(retrier: Retrier) -> None:
    _retriers[:] = [retrier]


def retry_execution(execution: Execution, user: User, now: datetime) -> UUID:
    """Run it once more, now: by its job as it is now, with the run's own parameters and planned time.

    The id of the new run. Conflict: it has not ended, or its job is gone. Forbidden.
    """
    require_run(user, Level.OPERATE, execution.id)
    if execution.state not in TERMINAL:
        raise Conflict(
            f"The run has not ended: it is {execution.state}. Cancel it first, or wait for its end."
        )
    (retrier,) = _retriers
    return retrier(execution, user, now)
