"""Pools, seen from the beat: it calls who may come in, and keeps the limits in Redis in line.

Any number of beats may do so at once: calling is one step in Redis, and a limit written twice is written.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from executions.database import DatabaseUnavailable, database_available
from executions.pools import Pools, send_called
from executions.store import Store
from executions.window import Window
from jobs.pools import all_limits, write_changed
from scheduler_project.kernel.clock import from_millis, monotonic

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
COMPARE_S = 10.0
SETTLE_S = 1.0
"""Redis has lost the limits, and the places too: the workers make those anew before the limits hold again."""


class PoolKeeper:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._pools = Pools(store, timedelta(0))
        self._missing_since: float | None = None
        self._compared_at = 0.0

    def run_once(self) -> float:
        """Places are given whether PostgreSQL answers or not: the limits that Redis has hold on."""
        window = Window(self._store)
        send_called(self._pools, window, self._pools.call(), from_millis(self._store.now_ms()))
        try:
            self._keep_limits()
        except DatabaseUnavailable as error:
            logger.warning("limits_wait", extra={"error": error.message})
            self._compared_at = monotonic()
        return PERIOD_S

    def _keep_limits(self) -> None:
        if self._missing_since is None and monotonic() - self._compared_at < COMPARE_S:
            if not self._pools.knows_limits():
                self._missing_since = monotonic()
            return
        known = self._pools.limits()
        if known is not None:
            self._missing_since = None
            self._compare(known)
        elif self._missing_since is None:
            self._missing_since = monotonic()
        elif monotonic() - self._missing_since >= SETTLE_S:
            with database_available():
                limits = all_limits()
            self._pools.write_limits(limits)
            self._missing_since = None
            self._compared_at = monotonic()
            logger.info("limits_written", extra={"limits": len(limits)})

    def _compare(self, known: dict[str, int]) -> None:
        with database_available():
            changed = write_changed(self._pools, known)
        self._compared_at = monotonic()
        if changed:
            logger.info("limits_changed", extra={"limits": changed})
