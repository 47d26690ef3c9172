"""Where the output of runs lies, as the settings say; for those who only read it."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from containers.logs import LogLimit, LogStore
from executions.models import Execution
from executions.states import State
from scheduler_project.kernel.errors import NotFound


def log_store() -> LogStore:
    half = settings.PUNCTUAL_LOG_LIMIT_BYTES // 2
    return LogStore(settings.PUNCTUAL_LOG_DIR, LogLimit(head=half, tail=half))


def latest_attempt(execution: Execution) -> int:
    """The newest attempt that has begun; NotFound where none has.

    A run that waits for its next attempt shows the output of the one that failed.
    """
    written = max(log_store().attempts(execution.id), default=0)
    begun = max(execution.attempt - 1, written) if _may_not_have_begun(execution) else execution.attempt
    if begun < 1:
        raise NotFound(f"The execution {execution.id} has not started: it has no log.")
    return begun


def read_log(execution: Execution, attempt: int) -> Iterator[bytes]:
    """The output of one attempt, in pieces; none where it was silent. NotFound: it has not begun."""
    if attempt > latest_attempt(execution):
        raise NotFound(f"The execution {execution.id} has had no attempt {attempt}.")
    try:
        return log_store().read(execution.id, attempt)
    except NotFound:
        return iter(())


def _may_not_have_begun(execution: Execution) -> bool:
    """Whether the attempt in the row is one that waits, or was cancelled, perhaps while it waited."""
    return (
        execution.started_at is None
        or execution.state in {State.WAITING, State.PAUSED}
        or (execution.state == State.CANCELLED and execution.attempt > 1)
    )
