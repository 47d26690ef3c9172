"""The loader: puts the waiting runs of the next minutes into the window, each row once.

A shard has a loaded-until mark in Redis. Each round reads, for the shards that this beat
owns, the rows due between the mark and now + 5 min, adds them to their buckets and moves
the mark. Where the mark is missing (a new shard, or a Redis that has lost its data),
everything up to the horizon is read, but for what is so overdue that the window would not give it
out: that is the sweep's. What becomes due inside the window after it was read
is pushed by whoever commits it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from beat.ownership import Ownership
from beat.queries import SWEEPS
from executions.database import database_available
from executions.entries import Entry
from executions.models import RunSpec
from executions.scheduling import spec_bodies
from executions.window import NO_LIMIT, Window
from scheduler_project.kernel.clock import EPOCH, from_millis

logger = logging.getLogger(__name__)

PAGE = 2000
PERIOD_S = 2.0
WAIT_FOR_SHARDS_S = 0.2


class Loader:
    def __init__(
        self, window: Window, ownership: Ownership, length: timedelta, grace: timedelta = NO_LIMIT
    ) -> None:
        self._window = window
        self._ownership = ownership
        self._length = length
        self._grace = grace
        self._missing: set[tuple[int, bytes]] = set()

    def run_once(self) -> float:
        """Extend every owned shard to now + the window's length; the seconds until the next round."""
        shards = self._ownership.owned()
        if not shards:
            return WAIT_FOR_SHARDS_S
        now = from_millis(self._window.store.now_ms())
        horizon, missed = now + self._length, now - self._grace
        groups: dict[datetime, list[int]] = defaultdict(list)
        for shard, mark in self._window.loaded_until(shards).items():
            groups[max(mark or EPOCH, missed)].append(shard)
        with database_available():
            self._send_missing_specs()
            for mark, group in groups.items():
                self._load(group, mark, horizon)
        return PERIOD_S

    def want_spec(self, shard: int, head: bytes) -> None:
        """Redis has lost a RunSpec that a due run needs: the next round brings it."""
        self._missing.add((shard, head))

    def _load(self, shards: Sequence[int], after: datetime, until: datetime) -> None:
        if after >= until:
            return
        count = 0
        with transaction.atomic(), connection.chunked_cursor() as cursor:
            cursor.execute(SWEEPS["load"], [list(shards), after, until])
            while rows := cursor.fetchmany(PAGE):
                entries = [_entry(row) for row in rows]
                self._window.add(entries, spec_bodies({entry.spec_id for entry in entries}))
                count += len(entries)
        self._window.mark_loaded(shards, until)
        if count:
            logger.info("window_loaded", extra={"shards": len(shards), "runs": count})

    def _send_missing_specs(self) -> None:
        missing, self._missing = self._missing, set()
        for shard, head in missing:
            low, high = UUID(bytes=head + bytes(8)), UUID(bytes=head + b"\xff" * 8)
            found = RunSpec.objects.filter(id__gte=low, id__lte=high).values_list("id", flat=True)
            self._window.put_specs(shard, spec_bodies(set(found)))


def _entry(row: Sequence[Any]) -> Entry:
    names = ("execution_id", "spec_id", "attempt", "due", "generation")
    return Entry(**dict(zip(names, row, strict=True)))
