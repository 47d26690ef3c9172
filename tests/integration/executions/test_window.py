from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from executions.claims import Claimed, Claims, heard
from executions.entries import Entry, Flag, spec_head
from executions.ids import execution_id
from executions.store import Store, StoreUnavailable
from executions.window import Window
from scheduler_project.kernel.clock import from_millis
from tests.integration.making import SPEC, entry_for

ON_A_CLUSTER_TOO = True

SHARD = 3
LEASE = timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def now(store: Store) -> datetime:
    return from_millis(store.now_ms())


def entry(due: datetime, shard: int = SHARD, flags: Flag = Flag.NONE) -> Entry:
    return entry_for(execution_id(uuid4(), due, "schedule", shard), due, flags=flags)


def popped(window: Window, limit: int = 1000, lease: timedelta = LEASE) -> list[bytes]:
    (due,) = window.pop([SHARD], lease, limit)
    return [run.member for run in due.runs]


def test_what_is_due_is_popped_once_in_order_and_the_next_is_named(window: Window, now: datetime) -> None:
    late, later, soon = entry(now - 3 * MINUTE), entry(now - MINUTE), entry(now + 2 * MINUTE)
    window.add([soon, later, late, late], {SPEC.id: SPEC.canonical})
    (due,) = window.pop([SHARD], LEASE, 1000)
    assert [run.member for run in due.runs] == [late.member, later.member]
    assert (due.shard, due.next_due) == (SHARD, from_millis(soon.score))
    assert timedelta(0) <= due.now - now < MINUTE
    (due,) = window.pop([SHARD], LEASE, 1000)
    assert (due.runs, due.next_due) == ([], from_millis(soon.score))


def test_nothing_is_known_of_an_empty_shard(window: Window) -> None:
    (due,) = window.pop([SHARD], LEASE, 1000)
    assert (due.runs, due.next_due) == ([], None)
    assert window.pop([], LEASE, 1000) == []


def test_a_shard_is_popped_by_pages_across_its_minutes(window: Window, now: datetime) -> None:
    entries = [entry(now - n * timedelta(seconds=20)) for n in range(25)]
    window.add(entries, {})
    pages = [popped(window, limit=10) for _ in range(4)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    by_due = sorted(entries, key=lambda item: item.due)
    assert [member for page in pages for member in page] == [item.member for item in by_due]


def test_each_shard_has_its_own(window: Window, now: datetime) -> None:
    mine, other = entry(now), entry(now, shard=4)
    window.add([mine, other], {})
    third, fourth = window.pop([3, 4], LEASE, 10)
    assert [run.member for run in third.runs] == [mine.member]
    assert [run.member for run in fourth.runs] == [other.member]


def test_poppers_at_once_never_share_a_run(window: Window, now: datetime) -> None:
    window.add([entry(now - n * timedelta(milliseconds=90)) for n in range(2000)], {})
    taken: list[bytes] = []

    def pop_all() -> None:
        while page := popped(window, limit=37):
            taken.extend(page)

    threads = [threading.Thread(target=pop_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 2000
    assert set(Counter(taken).values()) == {1}


def test_a_lease_that_ends_gives_the_run_back_first(window: Window, now: datetime) -> None:
    first, second = entry(now - MINUTE), entry(now - MINUTE)
    window.add([first], {})
    assert popped(window, lease=timedelta(milliseconds=50)) == [first.member]
    window.add([second], {})
    time.sleep(0.06)
    assert popped(window) == [first.member, second.member]
    assert popped(window) == []


def test_what_the_broker_has_is_noted_as_sent_and_not_given_back(window: Window, now: datetime) -> None:
    item = entry(now)
    window.add([item], {})
    assert [(place.in_flight, place.sent_at) for place in window.locate([item])] == [(False, None)]
    (due,) = window.pop([SHARD], timedelta(milliseconds=50), 10)
    assert window.locate([item])[0].in_flight
    window.confirm(due.runs, now, MINUTE)
    (place,) = window.locate([item])
    assert (place.in_flight, place.sent_at) == (False, now)
    time.sleep(0.06)
    assert popped(window) == []
    window.confirm([], now, MINUTE)


@pytest.mark.parametrize("known", ["before it is popped again", "afterwards"])
def test_what_is_popped_again_may_have_been_sent_and_is_kept_out_however_long_the_queue(
    window: Window, store: Store, now: datetime, known: str
) -> None:
    """Its beat died, or did not hear what the broker had taken. The second message comes when it comes."""
    item, shortly = entry(now), timedelta(milliseconds=40)
    other = entry(now)
    window.add([item], {})
    assert popped(window, lease=timedelta(milliseconds=20)) == [item.member]
    time.sleep(0.03)
    if known == "afterwards":
        assert popped(window) == [item.member]
    claims = Claims(store, "w", LEASE)
    for run in (item, other):
        assert claims.claim(run.execution_id, 1) is Claimed.WON
        claims.finish(run.execution_id, 1, b"outcome")
    heard(store, [(run.execution_id, 1) for run in (item, other)], shortly)
    if known == "before it is popped again":
        assert popped(window) == [item.member]
    time.sleep(0.06)
    assert claims.claim(item.execution_id, 1) is Claimed.DONE
    assert claims.claim(other.execution_id, 1) is Claimed.WON  # that was shortly


def test_a_recheck_that_is_sent_is_not_noted_so_that_what_takes_its_run_up_is(
    window: Window, now: datetime
) -> None:
    items = [
        entry(now, flags=flags) for flags in (Flag.RECHECK, Flag.RECHECK | Flag.PASSED_ON, Flag.REATTACH)
    ]
    window.add(items, {})
    (due,) = window.pop([SHARD], LEASE, 10)
    window.confirm(due.runs, now, MINUTE)
    assert [(place.in_flight, place.sent_at) for place in window.locate(items)] == [
        (False, None),
        (False, None),
        (False, now),
    ]


def test_sent_is_forgotten_after_its_time(window: Window, now: datetime) -> None:
    for n in (2, 1):
        item = entry(now)
        window.add([item], {})
        (due,) = window.pop([SHARD], LEASE, 10)
        window.confirm(due.runs, now - n * MINUTE, timedelta(seconds=59))
        if n == 2:
            first = item
    assert window.locate([first])[0].sent_at is None
    assert window.locate([item])[0].sent_at == now - MINUTE


@pytest.mark.parametrize("flags", [Flag.REATTACH, Flag.RECHECK, Flag.REATTACH | Flag.RECHECK])
def test_a_run_is_in_flight_whatever_its_flags(window: Window, now: datetime, flags: Flag) -> None:
    item = entry(now, flags=flags)
    window.add([item], {})
    (due,) = window.pop([SHARD], LEASE, 10)
    assert due.runs[0].flags == flags
    here, next_attempt, next_generation = window.locate(
        [item, replace(item, attempt=2), replace(item, generation=1)]
    )
    assert here.in_flight
    assert not next_attempt.in_flight
    assert not next_generation.in_flight
    assert window.locate([]) == []


def test_a_removed_run_is_neither_waiting_nor_in_flight(window: Window, now: datetime) -> None:
    one, two = entry(now), entry(now)
    window.add([one, two], {})
    window.remove([one])
    assert popped(window, lease=timedelta(milliseconds=30)) == [two.member]
    window.remove([two])
    time.sleep(0.04)
    assert popped(window) == []


def test_specs_lie_beside_the_runs_that_need_them(window: Window, now: datetime) -> None:
    item, head = entry(now), spec_head(SPEC.id)
    window.add([item], {SPEC.id: SPEC.canonical})
    assert window.specs({SHARD: [head, b"unknown!"]}) == {head: SPEC.canonical}
    assert window.specs({4: [head]}) == {}
    window.put({}, {4: {spec_head(SPEC.id): SPEC.canonical}})
    assert window.specs({4: [head]}) == {head: SPEC.canonical}
    assert window.specs({SHARD: []}) == {}


def test_the_loaded_mark_is_one_of_each_shard_and_gone_with_the_data(
    window: Window, store: Store, now: datetime
) -> None:
    window.mark_loaded([3, 4], now)
    assert window.loaded_until([3, 4, 5]) == {3: now, 4: now, 5: None}
    store.delete_namespace()
    assert window.loaded_until([3]) == {3: None}


def test_emptied_redis_forgets_its_scripts_and_the_next_pop_works(
    window: Window, store: Store, now: datetime
) -> None:
    window.add([entry(now)], {})
    store._redis.script_flush()
    assert len(popped(window)) == 1


def test_a_redis_that_is_away_is_said_to_be(now: datetime) -> None:
    gone = Window(Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1))
    calls = [
        lambda: gone.pop([1], LEASE, 1),
        lambda: gone.add([entry(now)], {}),
        lambda: gone.locate([entry_for(uuid4(), from_millis(0))]),
        lambda: gone.loaded_until([1]),
        lambda: gone.forbid(uuid4()),
        gone.store.now_ms,
        gone.store.delete_namespace,
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match="REDIS_URL"):
            call()


def test_a_wrong_type_in_redis_is_no_crash_of_another_kind(
    window: Window, store: Store, now: datetime
) -> None:
    store.batch(lambda pipe: pipe.set(store.key(SHARD, "buckets"), "text"))
    with pytest.raises(StoreUnavailable):
        window.pop([SHARD], LEASE, 1)


def test_each_server_says_how_much_memory_it_has_used(store: Store) -> None:
    found = store.servers("memory")
    assert len(found) in (1, 3)
    assert all(facts["used_memory"] > 0 and "role" not in facts for facts in found.values())
    assert all(facts["role"] == "master" for facts in store.servers().values())
