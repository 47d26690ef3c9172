"""How a run ended: what the runtime saw (Exit) and what it means (Outcome). Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from containers.spec import ContainerSpec
from scheduler_project.kernel.durations import format_duration


class Reason(StrEnum):
    """Why a run ended as it did; the value is what is stored as the execution's reason."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    CANCELLED = "user"
    START_FAILED = "start_failed"
    IMAGE_PULL_FAILED = "image_pull_failed"
    LOST = "lost"
    SECRET_MISSING = "secret_missing"  # noqa: S105
    NOT_ALLOWED = "not_allowed"
    START_TIMED_OUT = "start_timed_out"
    UNSCHEDULABLE = "unschedulable"
    CRASH_LOOP = "crash_loop"
    OUT_OF_DISK = "out_of_disk"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"
    DELETED = "removed"


# What is not the run's own failure: it starts again, counted apart from its retries.
LOSSES = frozenset({Reason.LOST, Reason.EVICTED, Reason.PREEMPTED, Reason.NODE_LOST, Reason.DELETED})


# A file's time stamp is by a clock that ticks some hundred times a second.
STAMPS_DIFFER = timedelta(milliseconds=20)


@dataclass(frozen=True, slots=True)
class Exit:
    """What a runtime saw at the end of a container.

    ``exit_code`` is 128 + n where signal n ended it, and None where nobody knows (it vanished).
    ``oom`` is None where it cannot be known whether memory ran out. ``start_error`` is set where
    the command itself could not be started. ``why`` is set, with a ``detail`` for people, where the
    engine itself gives the reason. ``stopped``: it was ended by its engine's own deadline, or by a
    watcher that is gone and did not say why. ``outside``: it was ended by neither itself nor a watcher
    (by its engine, say, which was shut down), as ``detail`` says. ``signalled``: somebody sent it a signal
    that is to end it; whoever did so may have been its watcher.
    """

    exit_code: int | None
    finished_at: datetime
    oom: bool | None = False
    start_error: str = ""
    why: Reason | None = None
    detail: str = ""
    stopped: bool = False
    outside: bool = False
    signalled: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an attempt. ``message`` is one line for people; times are aware, UTC."""

    reason: Reason
    exit_code: int | None
    message: str
    started_at: datetime
    finished_at: datetime


def verdict(ended: Exit, spec: ContainerSpec, started_at: datetime, cause: Reason | None = None) -> Outcome:
    """What ``ended`` means. ``cause`` is CANCELLED or TIMED_OUT where Punctual itself stopped the run."""
    reason = cause or ended.why or _reason(ended, spec, started_at)
    code = None if reason is Reason.START_FAILED else ended.exit_code
    finished_at = max(started_at, ended.finished_at)  # two files' time stamps are only so exact
    return Outcome(reason, code, _message(reason, ended, spec), started_at, finished_at)


def _reason(ended: Exit, spec: ContainerSpec, started_at: datetime) -> Reason:
    if ended.start_error:
        return Reason.START_FAILED
    if ended.oom:
        return Reason.OUT_OF_MEMORY
    # What is told to stop often ends with 0 before its time.
    if ended.exit_code == 0 and not (ended.outside or ended.stopped):
        return Reason.SUCCEEDED
    if _outlasted(ended, spec, started_at):
        # The watcher that stopped it died before it could say so; the times still tell.
        return Reason.TIMED_OUT
    if ended.outside or (ended.exit_code is None and not ended.stopped):
        return Reason.LOST
    return Reason.CANCELLED if ended.stopped else Reason.FAILED


def _outlasted(ended: Exit, spec: ContainerSpec, started_at: datetime) -> bool:
    """Told to end, and not before its limit. What it makes of that, its exit code, says nothing."""
    if spec.timeout_s is None or not (ended.stopped or ended.signalled or signal_name(ended.exit_code)):
        return False
    return ended.finished_at - started_at >= timedelta(seconds=spec.timeout_s) - STAMPS_DIFFER


def _message(reason: Reason, ended: Exit, spec: ContainerSpec) -> str:
    code = describe_code(ended.exit_code)
    if reason is Reason.TIMED_OUT and ended.why is not reason:
        limit = format_duration(timedelta(seconds=spec.timeout_s or 0))
        return f"stopped at its time limit of {limit}; {code}"
    if reason is Reason.CANCELLED:
        return f"stopped because it was cancelled; {code}"
    if reason is Reason.OUT_OF_MEMORY:
        limit = "" if spec.memory_bytes is None else f" of {_mebibytes(spec.memory_bytes)}"
        return f"needed more memory than its limit{limit}; {code}"
    if said := ended.start_error or ended.detail:
        return said if ended.start_error or ended.exit_code is None else f"{said}; {code}"
    if ended.oom is None and ended.exit_code == 128 + signal.SIGKILL and spec.memory_bytes is not None:
        return f"{code}; perhaps it needed more memory than its limit of {_mebibytes(spec.memory_bytes)}"
    return code


def _mebibytes(count: int) -> str:
    return f"{count / 1024**2:.0f} MiB"


def describe_code(code: int | None) -> str:
    """The exit code in words: ``exit code 3``, ``exit code 139 (SIGSEGV)``."""
    if code is None:
        return "it ended without leaving an exit code (removed, or its host or supervisor was killed)"
    name = signal_name(code)
    return f"exit code {code} ({name})" if name else f"exit code {code}"


def signal_name(code: int | None) -> str:
    """The signal that ``code`` = 128 + n stands for, or empty."""
    if code is None or code <= 128:
        return ""
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return ""


def one_line(text: str, limit: int = 400) -> str:
    """``text`` as a single line of at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
