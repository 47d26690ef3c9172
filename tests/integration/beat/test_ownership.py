from __future__ import annotations

import time
from datetime import timedelta

import pytest

from beat import ownership
from beat.ownership import Ownership
from executions.store import Store
from scheduler_project.kernel.clock import monotonic

LEASE = timedelta(minutes=1)
SHORT = timedelta(milliseconds=400)


def beat(store: Store, name: str, lease: timedelta = LEASE) -> Ownership:
    return Ownership(store, name, 16, lease)


def settle(*beats: Ownership) -> list[set[int]]:
    for _ in range(3):
        for one in beats:
            one.renew()
    return [set(one.owned()) for one in beats]


def pass_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a stall of the whole process."""
    later = monotonic() + LEASE.total_seconds() + 1
    monkeypatch.setattr(ownership, "monotonic", lambda: later)


def test_one_beat_owns_all_and_two_divide(store: Store) -> None:
    a, b = beat(store, "a"), beat(store, "b")
    assert settle(a) == [set(range(16))]
    of_a, of_b = settle(a, b)
    assert of_a
    assert of_b
    assert of_a | of_b == set(range(16))
    assert not of_a & of_b


def test_a_newcomer_takes_nothing_before_it_is_given_up(store: Store) -> None:
    a, b = beat(store, "a"), beat(store, "b")
    settle(a)
    b.renew()
    assert b.owned() == []
    assert set(a.owned()) == set(range(16))


def test_who_leaves_hands_over_at_once(store: Store) -> None:
    a, b = beat(store, "a"), beat(store, "b")
    settle(a, b)
    a.leave()
    assert a.owned() == []
    b.renew()
    assert set(b.owned()) == set(range(16))


def test_who_dies_is_taken_over_after_its_lease(store: Store) -> None:
    a, b = beat(store, "a", SHORT), beat(store, "b", SHORT)
    settle(a, b)
    deadline = monotonic() + 5
    while len(b.owned()) < 16:
        assert monotonic() < deadline
        time.sleep(b.renew() / 2)
    assert a.owned() == []


def test_a_beat_that_stalls_owns_nothing_until_it_has_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = beat(store, "a")
    settle(a)
    pass_a_lease(monkeypatch)
    assert a.owned() == []
    a.renew()
    assert set(a.owned()) == set(range(16))


def test_without_redis_a_lease_ends_and_nothing_is_raised(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = beat(store, "a")
    settle(a)
    monkeypatch.setattr(a, "_store", Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1))
    assert a.renew() == pytest.approx(LEASE.total_seconds() / 4)
    assert a.owned()
    pass_a_lease(monkeypatch)
    a.renew()
    assert a.owned() == []
    a.leave()
