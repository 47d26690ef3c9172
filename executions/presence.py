"""Which workers are there, for which queues, and how large they are: as they say it themselves, in Redis.

    {workers}:seen   ZSET   worker -> when it was last there, in ms by Redis' clock
    {workers}:facts  HASH   worker -> JSON of its queues, slots, CPUs and memory
    {workers}:busy   HASH   worker -> how many of its slots are taken

It answers why a run is not running; nothing depends on it. What is busy lies apart, so that a worker of
an older version can still read the facts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from executions.store import Store

LASTS = timedelta(seconds=10)
FORGOTTEN = timedelta(minutes=5)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class PresentWorker:
    """``cpus``, ``memory_bytes``: what its runs may ask for together; None: without limit.

    ``busy``: slots that are taken; None where it has not said so.
    """

    name: str
    queues: Sequence[str]
    slots: int
    cpus: float | None = None
    memory_bytes: int | None = None
    busy: int | None = None

    @property
    def full(self) -> bool:
        return self.busy is not None and self.busy >= self.slots


def announce(store: Store, worker: PresentWorker) -> None:
    now = store.now_ms()
    name, facts = worker.name, {**asdict(worker), "queues": list(worker.queues)}
    busy = facts.pop("busy")
    gone = now - FORGOTTEN // _MS
    (stale,) = store.batch(lambda pipe: pipe.zrangebyscore(_seen(store), "-inf", gone))

    def fill(pipe: Any) -> None:
        pipe.zadd(_seen(store), {name: now})
        pipe.hset(_facts(store), name, json.dumps(facts))
        if busy is not None:
            pipe.hset(_busy(store), name, busy)
        if stale:
            pipe.zrem(_seen(store), *stale)
            pipe.hdel(_facts(store), *stale)
            pipe.hdel(_busy(store), *stale)

    store.batch(fill)


def withdraw(store: Store, name: str) -> None:
    """It takes nothing more."""

    def fill(pipe: Any) -> None:
        pipe.zrem(_seen(store), name)
        pipe.hdel(_facts(store), name)
        pipe.hdel(_busy(store), name)

    store.batch(fill)


def workers_of(store: Store, queue: str) -> list[PresentWorker]:
    """Those that take from ``queue`` and were there within the last seconds."""
    return [worker for worker in present_workers(store) if queue in worker.queues]


def present_workers(store: Store) -> list[PresentWorker]:
    """All that were there within the last seconds, by name."""
    since = store.now_ms() - LASTS // _MS
    (names,) = store.batch(lambda pipe: pipe.zrangebyscore(_seen(store), since, "+inf"))
    if not names:
        return []
    names = sorted(names)
    found, busy = store.batch(
        lambda pipe: (pipe.hmget(_facts(store), names), pipe.hmget(_busy(store), names))
    )
    return [
        PresentWorker(**json.loads(facts), busy=None if taken is None else int(taken))
        for facts, taken in zip(found, busy, strict=True)
        if facts is not None
    ]


def _seen(store: Store) -> str:
    return store.tagged_key("workers", "seen")


def _facts(store: Store) -> str:
    return store.tagged_key("workers", "facts")


def _busy(store: Store) -> str:
    return store.tagged_key("workers", "busy")
