"""Which beat owns which shard.

1. Every beat keeps a place in one list of living beats, by Redis' clock, and says there whether
   it sees PostgreSQL.
2. Rendezvous hashing gives each shard to one of those that see it (of all, where none does); when
   a beat comes or goes, only the shards that it gains or loses move.
3. A beat takes the lease of each shard that is its own by that rule, as soon as it is free,
   and gives up the others at once.
4. It trusts a lease only until a deadline on its own monotonic clock, counted from before
   the request: a beat that was stalled and wakes up owns nothing until it has asked again.
5. Who takes a shard whose last owner let the lease end sends what that one had in flight at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import blake2b

from executions.beats import beats_key, owner_key
from executions.store import Script, Store, StoreUnavailable
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

_MEET = Script("beat.lua", "meet.lua")
_OWN = Script("beat.lua", "own.lua")
_DISOWN = Script("beat.lua", "disown.lua")
_MS = timedelta(milliseconds=1)


def assigned(shards: int, beats: Sequence[str], me: str) -> list[int]:
    """The shards that rendezvous hashing gives to ``me`` among ``beats`` (pure)."""
    return [shard for shard in range(shards) if max(beats, key=lambda beat: _weight(shard, beat)) == me]


def _weight(shard: int, beat: str) -> bytes:
    return blake2b(b"%d|%b" % (shard, beat.encode()), digest_size=8).digest()


class Ownership:
    """The shards of one beat. ``renew`` is called on a timer of its own, ``owned`` from any thread."""

    def __init__(
        self,
        store: Store,
        identity: str,
        shards: int,
        lease: timedelta,
        sees_database: Callable[[], bool] = lambda: True,
    ) -> None:
        self.identity = identity
        self._store = store
        self._shards = shards
        self._lease = lease
        self._sees_database = sees_database
        self._deadlines: dict[int, float] = {}
        self._lock = threading.Lock()

    def owned(self) -> list[int]:
        """The shards that this beat may act for right now."""
        now = monotonic()
        with self._lock:
            return sorted(shard for shard, deadline in self._deadlines.items() if now < deadline)

    def renew(self) -> float:
        """Meet the other beats, take what is ours, give up the rest; the seconds until the next time."""
        pause = self._lease.total_seconds() / 4
        asked_at = monotonic()
        try:
            wanted = assigned(self._shards, self._meet(), self.identity)
            self._give_up(set(self._deadlines) - set(wanted))
            self._take(wanted, asked_at)
        except StoreUnavailable as error:
            logger.warning("ownership_not_renewed", extra={"beat": self.identity, "error": error.message})
        return pause

    def leave(self) -> None:
        """Hand everything over at once (shutdown)."""
        try:
            self._store.run(_MEET, self._lists(), [self.identity, 0, 1])
            self._give_up(set(self._deadlines))
        except StoreUnavailable as error:
            logger.warning("left_without_farewell", extra={"beat": self.identity, "error": error.message})

    def _meet(self) -> list[str]:
        arguments = [self.identity, self._lease // _MS, int(self._sees_database())]
        return [name.decode() for name in self._store.run(_MEET, self._lists(), arguments)]

    def _take(self, wanted: Sequence[int], asked_at: float) -> None:
        calls = [
            ([*self._keys(shard), self._store.key(shard, "flight")], [self.identity, self._lease // _MS])
            for shard in wanted
        ]
        answers = self._store.run_each(_OWN, calls) if calls else []
        deadline = asked_at + self._lease.total_seconds()
        with self._lock:
            before = set(self._deadlines)
            self._deadlines = {shard: deadline for shard, mine in zip(wanted, answers, strict=True) if mine}
            after = set(self._deadlines)
        if before != after:
            logger.info("shards_changed", extra={"beat": self.identity, "shards": len(after)})

    def _give_up(self, shards: set[int]) -> None:
        with self._lock:
            for shard in shards:
                self._deadlines.pop(shard, None)
        if shards:
            self._store.run_each(_DISOWN, [(self._keys(shard), [self.identity]) for shard in sorted(shards)])

    def _lists(self) -> list[str]:
        return [beats_key(self._store), self._store.shared_key("blind")]

    def _keys(self, shard: int) -> list[str]:
        return [owner_key(self._store, shard), self._store.key(shard, "last")]
