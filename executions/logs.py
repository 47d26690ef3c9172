"""Where the output of runs lies, as the settings say; for those who only read it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from containers.logs import LogLimit, LogStore
from executions.models import Execution
from executions.states import State
from scheduler_project.kernel.errors import NotFound

TAIL_LINES = 200
_TAIL_BYTES = 64 * 1024
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of an attempt's output as text. ``cut``: there is more before them."""

    attempt: int
    text: str
    cut: bool


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


def log_tail(execution: Execution) -> LogTail | None:
    """The last TAIL_LINES lines of the latest attempt that has begun, for people; None where none has."""
    try:
        attempt = latest_attempt(execution)
    except NotFound:
        return None
    size, last = 0, deque[bytes](maxlen=2)
    for piece in read_log(execution, attempt):
        size += len(piece)
        last.append(piece)
    raw = b"".join(last)[-_TAIL_BYTES:]
    lines = _CONTROL.sub("", raw.decode(errors="replace")).splitlines()
    shown = lines[-TAIL_LINES:]
    return LogTail(attempt, "\n".join(shown), cut=size > len(raw) or len(lines) > len(shown))


def _may_not_have_begun(execution: Execution) -> bool:
    """Whether the attempt in the row is one that waits, or was cancelled, perhaps while it waited."""
    return (
        execution.started_at is None
        or execution.state in {State.WAITING, State.PAUSED}
        or (execution.state == State.CANCELLED and execution.attempt > 1)
    )
