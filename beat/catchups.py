"""Catching up at a limited rate: what is due now is never late because of what is made up for.

Two limits, shared among the beats by the shards they own: PUNCTUAL_CATCHUP_RATE runs are given leave a
second, and PUNCTUAL_CATCHUP_ACTIVE are under way at once, so that neither the broker's queue nor the
workers' slots fill with them. How many are under way is counted in the database; a restart of the beat
forgets no more than a fraction of a second's allowance.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from beat.ownership import Ownership
from executions.database import database_available
from executions.store import Store
from jobs.catchups import count_under_way, start_catch_ups
from jobs.parking import relieve_parked
from scheduler_project.kernel.clock import from_millis, monotonic

logger = logging.getLogger(__name__)

PERIOD_S = 0.25
LONGEST_SAVED_S = 0.5


@dataclass(frozen=True, slots=True)
class CatchUpLimits:
    """For all beats together: runs a second, runs at once; ``shards``: how many shards there are."""

    rate: int
    active: int
    shards: int


class Allowance:
    """Runs that may be started: so many a second, and no more saved up than for half a second (pure)."""

    def __init__(self, rate: float, at_s: float) -> None:
        self.rate = rate
        self._saved = 0.0
        self._at_s = at_s

    def room(self, at_s: float) -> int:
        self._saved += (at_s - self._at_s) * self.rate
        self._saved = min(self._saved, max(1.0, self.rate * LONGEST_SAVED_S))
        self._at_s = at_s
        return int(self._saved)

    def spend(self, runs: int) -> None:
        self._saved -= runs


class CatchUps:
    def __init__(self, store: Store, ownership: Ownership, limits: CatchUpLimits) -> None:
        self._store = store
        self._ownership = ownership
        self._limits = limits
        self._allowance = Allowance(0.0, monotonic())

    def run_once(self) -> float:
        """Give leave to what may start now, relieve what is parked; the seconds until the next time."""
        shards = self._ownership.owned()
        if not shards:
            return PERIOD_S
        now = from_millis(self._store.now_ms())
        share = len(shards) / self._limits.shards
        self._allowance.rate = self._limits.rate * share
        with database_available():
            relieve_parked(shards, now)
            under_way = count_under_way(shards, now)
            room = min(self._allowance.room(monotonic()), math.ceil(self._limits.active * share) - under_way)
            if room > 0:
                started = start_catch_ups(shards, room, now)
                self._allowance.spend(started)
                if started:
                    logger.info("catching_up", extra={"started": started, "under_way": under_way + started})
        return PERIOD_S
