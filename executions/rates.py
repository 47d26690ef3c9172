"""How often somebody asks: counted in Redis by all web processes together, in windows of a minute.

A minute begins with somebody's first request in it. Where Redis is away nobody is counted and everybody
passes: it guards against too many requests, and must not itself be what refuses them. Then it is not asked
for a while, so that no request waits for it.
"""

from __future__ import annotations

import logging
from functools import cache

from executions.store import Script, Store, StoreUnavailable
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

WINDOW_MS = 60_000
PATIENCE_S = 0.25  # of one request, for Redis
PAUSE_S = 5.0
_COUNT = Script("executions.lua", "count.lua")


class Rates:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._away_until = 0.0

    def wait_s(self, who: str, most: int) -> float | None:
        """Count one request of ``who``. None: it may pass; else how long it is until one may, in seconds.

        ``most``: requests in a minute; 0: however many, and none is counted.
        """
        if not most or monotonic() < self._away_until:
            return None
        try:
            count, left_ms = self._store.run(_COUNT, [self._store.tagged_key(who, "rate")], [WINDOW_MS])
        except StoreUnavailable as error:
            self._away_until = monotonic() + PAUSE_S
            logger.warning("rates_not_counted", extra={"pause_s": PAUSE_S, "error": error.message})
            return None
        return float(left_ms) / 1000 if count > most else None


@cache
def default_rates() -> Rates:
    """One for each process; its connections wait less long than those of others."""
    from django.conf import settings

    return Rates(Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE, timeout_s=PATIENCE_S))
