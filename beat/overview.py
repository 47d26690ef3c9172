"""Which beats are there and which shards each owns: as Redis has it at this moment."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from executions.beats import living_beats, owners_of
from executions.store import Store


@dataclass(frozen=True, slots=True)
class Beats:
    """``shards``: the shards that each living beat owns, by the beat's name; ``unowned``: those of nobody."""

    shards: dict[str, list[int]]
    unowned: list[int]


def beats(store: Store, shards: int) -> Beats:
    """``shards``: how many there are. A beat that has just come owns none yet."""
    owned: dict[str, list[int]] = defaultdict(list, {name: [] for name in living_beats(store)})
    owners = owners_of(store, range(shards))
    for shard, owner in owners.items():
        if owner is not None:
            owned[owner].append(shard)
    unowned = [shard for shard, owner in owners.items() if owner is None]
    return Beats(dict(sorted(owned.items())), unowned)
