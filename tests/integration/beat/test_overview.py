"""Which beats are there, and what each owns."""

from __future__ import annotations

from datetime import timedelta

from beat.overview import Beats, beats
from beat.ownership import Ownership
from executions.store import Store

LEASE = timedelta(minutes=1)


def test_each_beat_is_told_with_its_shards_and_what_nobody_owns(store: Store) -> None:
    first, second = Ownership(store, "a", 8, LEASE), Ownership(store, "b", 8, LEASE)
    assert beats(store, 8) == Beats({}, list(range(8)))
    first.renew()
    assert beats(store, 8) == Beats({"a": list(range(8))}, [])
    second.renew()
    assert beats(store, 8).shards == {"a": list(range(8)), "b": []}
    for beat in (first, second):
        beat.renew()
    first.leave()
    assert beats(store, 8) == Beats({"b": second.owned()}, first.owned() or beats(store, 8).unowned)
    assert sorted([*second.owned(), *beats(store, 8).unowned]) == list(range(8))
