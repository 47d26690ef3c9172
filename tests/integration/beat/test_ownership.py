from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest

from beat import ownership
from beat.ownership import Ownership
from executions.ids import execution_id
from executions.store import Store
from executions.window import Window
from scheduler_project.kernel.clock import from_millis, monotonic
from tests.integration.making import SPEC, entry_for

ON_A_CLUSTER_TOO = True

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


def test_who_does_not_see_the_database_gives_up_what_others_can_take(store: Store) -> None:
    seeing = {"a": True, "b": True}
    a, b = (Ownership(store, name, 16, LEASE, partial(seeing.__getitem__, name)) for name in seeing)
    of_a, of_b = settle(a, b)
    seeing["b"] = False
    assert settle(b, a) == [set(), set(range(16))]
    seeing["a"] = False
    assert settle(a, b) == [of_a, of_b]
    seeing["b"] = True
    assert settle(a, b) == [set(), set(range(16))]


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


def pop_one(window: Window) -> int:
    """One run is due in shard 3; how many are popped."""
    due = from_millis(window.store.now_ms())
    window.add([entry_for(execution_id(uuid4(), due, "schedule", 3), due)], {SPEC.id: SPEC.canonical})
    return popped(window)


def popped(window: Window) -> int:
    return len(window.pop([3], LEASE, 100)[0].runs)


def take_over(one: Ownership) -> None:
    deadline = monotonic() + 5
    while len(one.owned()) < 16:
        assert monotonic() < deadline
        time.sleep(one.renew() / 2)


def test_what_a_dead_beat_had_in_flight_is_due_again_at_once(store: Store, window: Window) -> None:
    a, b = beat(store, "a", SHORT), beat(store, "b", SHORT)
    settle(a)
    assert pop_one(window) == 1
    assert popped(window) == 0
    take_over(b)
    assert popped(window) == 1
    assert popped(window) == 0


def test_what_a_beat_has_in_flight_stays_its_own_where_it_leaves_or_was_only_slow(
    store: Store, window: Window
) -> None:
    a, b = beat(store, "a", SHORT), beat(store, "b", SHORT)
    settle(a)
    assert pop_one(window) == 1
    deadline = monotonic() + 5
    while a.owned():  # as when Redis did not answer for so long
        assert monotonic() < deadline
        time.sleep(0.05)
    take_over(a)
    assert popped(window) == 0
    a.leave()
    take_over(b)
    assert popped(window) == 0
