"""Waiting, and what a process has computed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from scheduler_project.kernel.clock import monotonic, utcnow


def cpu_s(pid: int) -> float:
    """Seconds that all threads of a process have computed, to the nanosecond (Linux)."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def sleep_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - utcnow()).total_seconds()))


def wait_for(condition: Callable[[], bool], what: str, within_s: float, every_s: float = 0.05) -> None:
    """RuntimeError, naming ``what``, where it does not come true."""
    deadline = monotonic() + within_s
    while not condition():
        if monotonic() > deadline:
            raise RuntimeError(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)
