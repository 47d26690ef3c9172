from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from beat.ownership import assigned

beats = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique=True)
SHARDS = 32


def owners(present: list[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for beat in present:
        for shard in assigned(SHARDS, present, beat):
            assert shard not in found, "two own it"
            found[shard] = beat
    return found


@given(beats)
def test_each_shard_has_exactly_one_owner(present: list[str]) -> None:
    assert sorted(owners(present)) == list(range(SHARDS))


@given(beats)
def test_the_order_in_which_beats_are_named_does_not_count(present: list[str]) -> None:
    assert owners(present) == owners(present[::-1])


@given(beats, st.text(min_size=1, max_size=12))
def test_only_what_must_moves_when_a_beat_comes_or_goes(present: list[str], other: str) -> None:
    if other in present:
        return
    before, after = owners(present), owners([*present, other])
    assert all(after[shard] in (before[shard], other) for shard in range(SHARDS))


def test_work_is_divided() -> None:
    sizes = [len(assigned(1024, ["a", "b", "c", "d"], beat)) for beat in "abcd"]
    assert min(sizes) > 180


def test_who_is_not_among_them_owns_nothing() -> None:
    assert assigned(SHARDS, ["a", "b"], "c") == []
