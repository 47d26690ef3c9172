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


@dataclass(frozen=True, slots=True)
class Exit:
    """What a runtime saw at the end of a container.

    ``exit_code`` is 128 + n where signal n ended it, and None where nobody knows (it vanished).
    ``oom`` is None where it cannot be known whether memory ran out. ``start_error`` is set where
    the command itself could not be started.
    """

    exit_code: int | None
    finished_at: datetime
    oom: bool | None = False
    start_error: str = ""


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
    reason = cause or _reason(ended, spec, started_at)
    code = None if reason is Reason.START_FAILED else ended.exit_code
    finished_at = max(started_at, ended.finished_at)  # two files' time stamps are only so exact
    return Outcome(reason, code, _message(reason, ended, spec), started_at, finished_at)


def _reason(ended: Exit, spec: ContainerSpec, started_at: datetime) -> Reason:
    if ended.start_error:
        return Reason.START_FAILED
    if ended.oom:
        return Reason.OUT_OF_MEMORY
    if ended.exit_code is None:
        return Reason.LOST
    if ended.exit_code == 0:
        return Reason.SUCCEEDED
    if _outlasted(ended, spec, started_at):
        # The watcher that stopped it died before it could say so; the times still tell.
        return Reason.TIMED_OUT
    return Reason.FAILED


def _outlasted(ended: Exit, spec: ContainerSpec, started_at: datetime) -> bool:
    if spec.timeout_s is None or signal_name(ended.exit_code) == "":
        return False
    return ended.finished_at - started_at >= timedelta(seconds=spec.timeout_s)


def _message(reason: Reason, ended: Exit, spec: ContainerSpec) -> str:
    code = describe_code(ended.exit_code)
    if reason is Reason.TIMED_OUT:
        limit = format_duration(timedelta(seconds=spec.timeout_s or 0))
        return f"stopped at its time limit of {limit}; {code}"
    if reason is Reason.CANCELLED:
        return f"stopped because it was cancelled; {code}"
    if reason is Reason.OUT_OF_MEMORY:
        limit = "" if spec.memory_bytes is None else f" of {_mebibytes(spec.memory_bytes)}"
        return f"needed more memory than its limit{limit}; {code}"
    if reason is Reason.START_FAILED:
        return ended.start_error
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
