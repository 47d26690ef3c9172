"""Where the container of a run is, and who may take it up again.

Only a worker that reaches the container's engine can attach to it. So the claim leaves the site
of an attempt behind (lua/claim.lua), each worker says now and then that its engine has a worker, and
a run whose worker is gone goes to the queue of that engine. Where no worker of it has been seen for
PUNCTUAL_ENGINE_WAIT the engine is given up: any worker may then say that the run is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from uuid import UUID

from executions.bus.topology import ENGINE_QUEUE
from executions.ids import shard_in
from executions.store import Script, Store
from scheduler_project.kernel.clock import EPOCH, from_micros, from_millis

_ANNOUNCE = Script("executions.lua", "announce.lua")
SITE_KEPT = timedelta(days=7)
_KEPT_MS = SITE_KEPT // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Site:
    """Where an attempt is. ``engine``: empty where nobody knows. ``taken_at``: when its message was
    last taken off a queue, by Redis' clock. ``begun_at``: when its JOB_STARTED was first said, if known."""

    attempt: int
    taken_at: datetime
    begun_at: datetime | None = None
    engine: str = ""

    def given_up_at(self, seen: Mapping[str, datetime], wait: timedelta) -> datetime:
        """Until when only its own engine's workers may take it up (pure). ``seen``: see Engines."""
        return seen[self.engine] + wait if self.engine in seen else EPOCH

    def is_elsewhere(self, identity: str) -> bool:
        """Whether it is on another engine than ``identity``, which is empty where that is not known yet."""
        return self.engine not in ("", identity)

    def is_for_others(self, identity: str, now: datetime, given_up_at: datetime) -> bool:
        """Whether a worker of its own engine is to take it up, or this worker may turn out to be one."""
        return self.is_elsewhere(identity) and (not identity or now < given_up_at)


class Engines:
    """The engines whose workers were seen in the last days, by Redis' clock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = store.shared_key("engines")

    def announce(self, identity: str) -> None:
        """A worker of this engine is there."""
        self._store.run(_ANNOUNCE, [self._key], [identity, _KEPT_MS])

    def seen(self) -> dict[str, datetime]:
        """When a worker of each was last seen."""
        (found,) = self._store.batch(lambda pipe: pipe.zrange(self._key, 0, -1, withscores=True))
        return {identity.decode(): from_millis(int(at)) for identity, at in found}


def engine_queue(identity: str) -> str:
    """The queue of those who reach that engine; its name holds for any broker."""
    return ENGINE_QUEUE + blake2b(identity.encode(), digest_size=8).hexdigest()


def site_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "site", execution_id.hex)


def known_sites(store: Store, attempts: Sequence[tuple[UUID, int]]) -> list[Site | None]:
    """Where each attempt is; None where nothing is known of it."""
    if not attempts:
        return []
    answers = store.batch(lambda pipe: [pipe.get(site_key(store, run)) for run, _ in attempts])
    sites = [None if answer is None else _read(answer.decode()) for answer in answers]
    return [
        site if site is not None and site.attempt == attempt else None
        for site, (_, attempt) in zip(sites, attempts, strict=True)
    ]


def queues_of_engines(
    store: Store, attempts: Sequence[tuple[UUID, int]], now: datetime, wait: timedelta
) -> dict[tuple[UUID, int], str]:
    """The queue of its engine for each attempt that is there, unless its engine is given up."""
    if not attempts:
        return {}
    seen = Engines(store).seen()
    return {
        attempt: engine_queue(site.engine)
        for attempt, site in zip(attempts, known_sites(store, attempts), strict=True)
        if site is not None and now < site.given_up_at(seen, wait)
    }


def _read(value: str) -> Site:
    attempt, taken, begun, engine = value.split(" ")
    begun_at = from_micros(int(begun)) if int(begun) else None
    return Site(int(attempt), from_millis(int(taken)), begun_at, engine)
