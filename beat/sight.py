"""Whether this beat reaches PostgreSQL.

One that does not dispatches what is in the window, but loads and sweeps nothing. While others see it, they
take its shards; where nobody does, all go on as they are.
"""

from __future__ import annotations

from django.db import connection

from executions.database import database_available
from scheduler_project.kernel.clock import monotonic

PERIOD_S = 1.0
BLIND_AFTER_S = 5.0


class Sight:
    """``run_once`` is called on a timer of its own, ``clear`` from any thread."""

    def __init__(self) -> None:
        self._seen_at = monotonic()

    def run_once(self) -> float:
        with database_available(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        self._seen_at = monotonic()
        return PERIOD_S

    def clear(self) -> bool:
        return monotonic() - self._seen_at < BLIND_AFTER_S
