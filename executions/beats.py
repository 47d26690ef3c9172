"""Which beats live and which shard is whose, for those who only look (Redis).

    {all}:beats      ZSET    beat -> end of its lease in ms
    {<shard>}:owner  string  the beat that may act for the shard, until its lease ends

beat/ownership.py writes both.
"""

from __future__ import annotations

from collections.abc import Sequence

from executions.store import Store


def beats_key(store: Store) -> str:
    return store.shared_key("beats")


def owner_key(store: Store, shard: int) -> str:
    return store.key(shard, "owner")


def living_beats(store: Store) -> list[str]:
    now = store.now_ms()
    (names,) = store.batch(lambda pipe: pipe.zrangebyscore(beats_key(store), f"({now}", "+inf"))
    return [name.decode() for name in names]


def owners_of(store: Store, shards: Sequence[int]) -> dict[int, str | None]:
    """Which beat owns each shard at this moment; None: none does."""
    found = store.batch(lambda pipe: [pipe.get(owner_key(store, shard)) for shard in shards])
    return {
        shard: None if owner is None else owner.decode() for shard, owner in zip(shards, found, strict=True)
    }
