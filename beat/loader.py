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
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from beat.ownership import Ownership
from beat.queries import SWEEPS
from executions.database import database_available
from executions.entries import spec_head
from executions.freshness import require_fresh
from executions.models import RunSpec
from executions.scheduling import spec_bodies
from executions.window import NO_LIMIT, SPEC_TTL_S, Window
from scheduler_project.kernel.clock import EPOCH, from_millis, monotonic

logger = logging.getLogger(__name__)

PAGE = 2000
CROWDED = 0.8
NEAR = timedelta(seconds=20)
"""So far ahead runs are held while Redis is CROWDED: the rest of its memory is for claims and outcomes."""
PERIOD_S = 2.0
WAIT_FOR_SHARDS_S = 0.2
BROUGHT_FOR_S = SPEC_TTL_S / 3  # with the longest window a run needs it an hour later
MOST_BROUGHT = 200_000


class Loader:
    def __init__(
        self, window: Window, ownership: Ownership, length: timedelta, grace: timedelta = NO_LIMIT
    ) -> None:
        self._window = window
        self._ownership = ownership
        self._length = length
        self._grace = grace
        self._missing: set[tuple[int, bytes]] = set()
        self._brought = _Brought()
        self._crowded = False

    def run_once(self) -> float:
        """Extend every owned shard to now + the window's length; the seconds until the next round."""
        shards = self._ownership.owned()
        if not shards:
            return WAIT_FOR_SHARDS_S
        now = from_millis(self._window.store.now_ms())
        horizon, missed = now + self._reach(), now - self._grace
        marks = self._window.loaded_until(shards)
        self._brought.forget({shard for shard, mark in marks.items() if mark is None})
        groups: dict[datetime, list[int]] = defaultdict(list)
        for shard, mark in marks.items():
            groups[max(mark or EPOCH, missed)].append(shard)
        with database_available():
            self._send_missing_specs()
            for mark, group in groups.items():
                self._load(group, mark, horizon)
        return PERIOD_S

    def _reach(self) -> timedelta:
        """How far ahead to load: less where Redis has a limit and nears it."""
        used = max(map(share_used, self._window.store.servers("memory").values()))
        if (crowded := used > CROWDED) is not self._crowded:
            self._crowded = crowded
            log = logger.warning if crowded else logger.info
            log("window_shortened" if crowded else "window_whole", extra={"redis_memory": f"{used:.0%}"})
        return min(self._length, NEAR) if crowded else self._length

    def want_spec(self, shard: int, head: bytes) -> None:
        """Redis has lost a RunSpec that a due run needs: the next round brings it."""
        self._missing.add((shard, head))

    def _load(self, shards: Sequence[int], after: datetime, until: datetime) -> None:
        if after >= until:
            return
        count = 0
        with transaction.atomic(), connection.wrap_database_errors, _binary_cursor() as cursor:
            cursor.execute(SWEEPS["load"], [list(shards), after, until])
            read_at = monotonic()
            while rows := cursor.fetchmany(PAGE):
                self._put(rows, read_at)
                count += len(rows)
                read_at = monotonic()
        self._window.mark_loaded(shards, until)
        if count:
            logger.info("window_loaded", extra={"shards": len(shards), "runs": count})

    def _put(self, rows: Sequence[tuple[int, int, bytes, bytes]], read_at: float) -> None:
        members: dict[int, dict[bytes, int]] = defaultdict(dict)
        wanted: set[tuple[int, bytes]] = set()
        for shard, score, member, spec in rows:
            members[shard][member] = score
            wanted.add((shard, spec))
        new = self._brought.new(wanted)
        bodies = spec_bodies({UUID(bytes=spec) for _, spec in new})
        specs: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        for shard, spec in new:
            if (body := bodies.get(UUID(bytes=spec))) is not None:
                specs[shard][spec[:8]] = body
        require_fresh(read_at)
        self._window.put(members, specs)
        self._brought.add(new)

    def _send_missing_specs(self) -> None:
        missing, self._missing = self._missing, set()
        for shard, head in missing:
            low, high = UUID(bytes=head + bytes(8)), UUID(bytes=head + b"\xff" * 8)
            found = RunSpec.objects.filter(id__gte=low, id__lte=high).values_list("id", flat=True)
            bodies = spec_bodies(set(found))
            self._window.put({}, {shard: {spec_head(spec_id): body for spec_id, body in bodies.items()}})


def share_used(facts: Mapping[str, Any]) -> float:
    """Of the memory that a Redis may take, by its INFO; 0 where it has no limit (pure)."""
    most = int(facts.get("maxmemory", 0))
    return int(facts["used_memory"]) / most if most else 0.0


def _binary_cursor() -> Any:
    """psycopg's own, on the server: Django's would hand over text, which takes longer to read."""
    return connection.connection.cursor("load", binary=True)


class _Brought:
    """Which RunSpecs have been put into which shard of the window lately, and need not be again."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, bytes], float] = {}

    def new(self, specs: set[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Those that have to be put there (again), before Redis lets them go."""
        past = monotonic() - BROUGHT_FOR_S
        return {spec for spec in specs if self._at.get(spec, past) <= past}

    def add(self, specs: set[tuple[int, bytes]]) -> None:
        if len(self._at) > MOST_BROUGHT:
            self._at.clear()
        self._at.update(dict.fromkeys(specs, monotonic()))

    def forget(self, shards: set[int]) -> None:
        """Redis has lost what these shards held."""
        if shards:
            self._at = {spec: at for spec, at in self._at.items() if spec[0] not in shards}
