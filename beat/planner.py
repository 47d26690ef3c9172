"""The planner: a recurring job always has its next occurrence.

The recorder makes it in the transaction that ends the one before, so there is normally
nothing to do; this finds the jobs whose chain has broken all the same (rows deleted by hand,
a schedule that could not be read for a while).
"""

from __future__ import annotations

import logging

from django.db import transaction

from beat.ownership import Ownership
from executions.database import database_available
from executions.scheduling import push_due_soon
from executions.transitions import insert
from jobs.occurrences import missing_occurrences
from scheduler_project.kernel.clock import Clock

logger = logging.getLogger(__name__)

PERIOD_S = 60.0
WAIT_FOR_SHARDS_S = 1.0


class Planner:
    def __init__(self, ownership: Ownership, clock: Clock) -> None:
        self._ownership = ownership
        self._clock = clock

    def run_once(self) -> float:
        shards = self._ownership.owned()
        if not shards:
            return WAIT_FOR_SHARDS_S
        now = self._clock.now()
        with database_available():
            with transaction.atomic():
                entries = insert(missing_occurrences(shards, now))
            push_due_soon(entries, now)
        if entries:
            logger.warning("occurrences_mended", extra={"jobs": len(entries)})
        return PERIOD_S
