"""Rows in hand are acted on soon or not at all.

A process that was stalled between reading rows and acting on them (SIGSTOP, a paused machine) does not know
what others have done since. What they have run is kept out by its claim, but for a while only; so rows that
were read too long ago are dropped, and read again.
"""

from __future__ import annotations

from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError

FRESH_S = 10.0
"""Half of the shortest time for which a claim outlasts the recording of its outcome."""


class Stale(RetryableError):
    """This process was stalled with rows in hand; they are read again."""


def require_fresh(read_at: float) -> None:
    """``read_at``: by the monotonic clock, before they were asked for. Stale: they must not be acted on."""
    age_s = monotonic() - read_at
    if age_s > FRESH_S:
        raise Stale(f"rows that were read {age_s:.0f} s ago are read again: this process was stalled")
