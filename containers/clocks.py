"""The clock of an engine elsewhere, which may go otherwise than this host's; by the Date of its answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock

PROMPT = timedelta(seconds=2)  # an answer that took longer says too little of the time


class ServerClock:
    """A clock as the last prompt answer had it; this host's, until there was one."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._ahead = timedelta(0)

    def learn(self, date: str, asked_at: datetime) -> None:
        """``date``: the Date of an answer that has just come to a request of ``asked_at``."""
        answered_at = self._clock.now()
        if answered_at - asked_at <= PROMPT:
            self._ahead = clock_ahead(date, asked_at, answered_at)

    def now(self) -> datetime:
        return self._clock.now() + self._ahead


def clock_ahead(date: str, asked_at: datetime, answered_at: datetime) -> timedelta:
    """How far a server's clock is ahead of ours at least, by the Date of an answer (whole seconds, rounded
    down); negative where it is behind, 0 where the two may agree or there is no Date that can be read."""
    try:
        earliest = parsedate_to_datetime(date)
    except ValueError:
        return timedelta(0)
    if earliest.tzinfo is None:
        return timedelta(0)
    latest = earliest + timedelta(seconds=1)
    return max(earliest - answered_at, timedelta(0)) or min(latest - asked_at, timedelta(0))
