"""The only place that reads a clock (ruff bans the raw calls everywhere else).

Four clocks are in use, and each says so by name:

* ``Clock.now``: wall-clock time, aware, UTC; for what is written down.
* ``monotonic``: seconds that never step; for leases and time-outs inside one process.
* ``thread_cpu_s``: seconds of the processor that this thread has had; for bounds on computing.
* Redis' own ``TIME``: decides what is due; it is read inside the Lua scripts.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(3000, 1, 1, tzinfo=UTC)  # what people give lies before it
MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when told to; for tests."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> None:
        self._now += by


SYSTEM_CLOCK = SystemClock()


def utcnow() -> datetime:
    return SYSTEM_CLOCK.now()


def monotonic() -> float:
    """Seconds since some fixed point; never goes back, never jumps."""
    return time.monotonic()


def thread_cpu_s() -> float:
    """Seconds that this thread has computed; neither waiting nor other threads add to them."""
    return time.thread_time()


def to_micros(instant: datetime) -> int:
    """Whole microseconds since 1970-01-01T00:00Z, exactly (no float in between)."""
    return (instant - EPOCH) // MICROSECOND


def to_millis(instant: datetime) -> int:
    """Whole milliseconds since 1970-01-01T00:00Z, rounded down."""
    return to_micros(instant) // 1000


def from_millis(millis: int) -> datetime:
    return EPOCH + timedelta(milliseconds=millis)


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
