"""Held runs: Waiting, but not due before something gives them leave.

``check_at`` of a held run is its due time ``SHIFT`` later. The loader, the sweep and the window look
at times up to now and a few minutes, so none of them ever sees a held run; who gives leave finds them
in the order of their due times, by the same index. Releasing one sets its ``check_at`` to its due time.

Held are runs that catch up or are backfilled (beat/catchups.py gives leave, at a limited rate), and
the next occurrence of a job whose run must end first (jobs/overlaps.py).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler_project.kernel.clock import EPOCH

SHIFT = timedelta(days=730_485)  # two thousand years: past every time that a schedule can name
FIRST_HELD = EPOCH + SHIFT


def held(due: datetime) -> datetime:
    """``check_at`` of a held run that is due then."""
    return due + SHIFT


def is_held(check_at: datetime) -> bool:
    return check_at >= FIRST_HELD


def due_when_released(check_at: datetime) -> datetime:
    return check_at - SHIFT if is_held(check_at) else check_at
