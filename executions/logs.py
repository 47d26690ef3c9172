"""The output of runs, for those who only read it: whole, a part of it, its last lines."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from containers.logs.output import Output
from containers.logs.portions import ByteRange, cut, last_lines
from containers.logs.stamps import stamped
from executions.log_archive import ArchiveUnavailable, log_archive
from executions.log_places import live_logs, log_store, output_of
from executions.models import Execution
from executions.states import TERMINAL, State
from executions.store import StoreUnavailable, hasty_store
from scheduler_project.kernel.errors import NotFound

TAIL_LINES = 200
_TAIL_BYTES = 64 * 1024
_NOTES_PIECES = 2  # notes are small; more than this is output
_NOTE = re.compile(rb"\[punctual \S+\] (.*)")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of an attempt's output as text. ``cut``: there is more before them."""

    attempt: int
    text: str
    cut: bool


def attempts_with_log(execution: Execution) -> list[int]:
    """The attempts whose output can be read, in order; those in the archive only while it answers."""
    found = set(log_store().attempts(execution.id))
    with suppress(ArchiveUnavailable):
        found.update(log_archive().attempts(execution.id))
    live = live_logs(hasty_store())
    if live is not None and execution.state not in TERMINAL:
        with suppress(StoreUnavailable):
            found.update([execution.attempt] if live.written((execution.id, execution.attempt)) else [])
    return sorted(found)


def latest_attempt(execution: Execution) -> int:
    """The newest attempt that has begun; NotFound where none has.

    A run that waits for its next attempt shows the output of the one that failed.
    """
    begun = execution.attempt
    if _may_not_have_begun(execution):
        begun = max(execution.attempt - 1, *attempts_with_log(execution), 0)
    if begun < 1:
        raise NotFound(f"The execution {execution.id} has not started: it has no log.")
    return begun


def read_log(
    execution: Execution, attempt: int, *, timestamps: bool = False, tail: int | None = None
) -> Iterator[bytes]:
    """The output of one attempt, in pieces; none where it was silent. NotFound: it has not begun.

    ``timestamps``: before each line its time and stream. ``tail``: so many of its last lines.
    ArchiveUnavailable: try again later.
    """
    output = _begun(execution, attempt)
    if output is None:
        return iter(())
    pieces = stamped(output.pieces, output.stamps()) if timestamps else output.pieces
    return pieces if tail is None else last_lines(pieces, tail)


def _begun(execution: Execution, attempt: int) -> Output | None:
    if attempt > latest_attempt(execution):
        raise NotFound(f"The execution {execution.id} has had no attempt {attempt}.")
    return output_of(execution, attempt)


@dataclass(frozen=True, slots=True)
class LogRange:
    """Bytes [begin, end) of the ``total`` that are shown of an attempt's output; none where they are one."""

    begin: int
    end: int
    total: int
    pieces: Iterator[bytes]


def read_log_range(execution: Execution, attempt: int, asked: ByteRange) -> LogRange:
    """The part that was asked for. Errors as of ``read_log``."""
    output = _begun(execution, attempt)
    if output is None:
        return LogRange(0, 0, 0, iter(()))
    total = output.size
    if total is None:  # it has ended: what is read again is the same
        total = sum(map(len, output.pieces))
        output = _begun(execution, attempt) or output
    begin, end = asked.within(total) or (0, 0)
    return LogRange(begin, end, total, cut(output.pieces, begin, end))


def log_tail(execution: Execution) -> LogTail | None:
    """The last TAIL_LINES lines of the latest attempt that has begun, for people; None where none has."""
    try:
        attempt = latest_attempt(execution)
    except NotFound:
        return None
    size, last = 0, deque[bytes](maxlen=2)
    try:
        for piece in read_log(execution, attempt):
            size += len(piece)
            last.append(piece)
    except ArchiveUnavailable as error:
        last.extend([b"", f"{error.message}\n".encode()])
    raw = b"".join(last)[-_TAIL_BYTES:]
    lines = _CONTROL.sub("", raw.decode(errors="replace")).splitlines()
    shown = lines[-TAIL_LINES:]
    return LogTail(attempt, "\n".join(shown), cut=size > len(raw) or len(lines) > len(shown))


def last_note(execution: Execution) -> str:
    """What the runtime has said last of the attempt that goes on; empty once that has put out anything.

    A note lies before the output: where the last line is one, there is no output yet.
    """
    with suppress(NotFound, ArchiveUnavailable, StoreUnavailable):
        last = b""
        for number, piece in enumerate(read_log(execution, execution.attempt)):
            if number >= _NOTES_PIECES:
                return ""
            last = piece
        found = _NOTE.fullmatch(last.rstrip(b"\n").rpartition(b"\n")[2])
        return found[1].decode(errors="replace") if found else ""
    return ""


def _may_not_have_begun(execution: Execution) -> bool:
    """Whether the attempt in the row is one that waits, or was cancelled, perhaps while it waited."""
    return (
        execution.started_at is None
        or execution.state in {State.WAITING, State.PAUSED}
        or (execution.state == State.CANCELLED and execution.attempt > 1)
    )
