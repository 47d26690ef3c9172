"""Places in pools and their lines, in a real Redis."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from executions.entries import Entry, Popped
from executions.ids import execution_id
from executions.pools import Full, Pools, Usage, Waiter, leave_lines, rank, send_called
from executions.priorities import Priority
from executions.store import Store
from executions.window import Window
from scheduler_project.kernel.clock import to_millis, utcnow

ON_A_CLUSTER_TOO = True

LEASE = timedelta(seconds=30)
POOL = ("pool:warehouse",)


@pytest.fixture
def pools(store: Store) -> Pools:
    found = Pools(store, LEASE)
    found.write_limits({"pool:warehouse": 2})
    return found


def waiter(
    names: tuple[str, ...] = POOL,
    priority: Priority = Priority.NORMAL,
    age_s: int = 0,
    must_know: bool = True,
) -> Waiter:
    due = utcnow() - timedelta(seconds=age_s)
    run = execution_id(uuid4(), due, "schedule", 3)
    entry = Entry(execution_id=run, spec_id=uuid4(), attempt=1, due=due)
    return Waiter(Popped(entry.member), names, rank(priority, to_millis(due)), must_know)


def run_of(item: Waiter) -> UUID:
    return item.run.execution_id


def test_who_finds_it_full_waits_and_is_called_by_priority_and_time(pools: Pools) -> None:
    inside = [waiter(), waiter()]
    assert [pools.enter(item) for item in inside] == [(None, []), (None, [])]
    line = [
        waiter(age_s=1),
        waiter(age_s=5),
        waiter(priority=Priority.HIGH),
        waiter(priority=Priority.LOW, age_s=9),
    ]
    assert [pools.enter(item)[0] for item in line] == [Full("pool:warehouse", 2)] * 4
    assert pools.waiting([run_of(item) for item in [*inside, *line]]) == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    assert pools.call() == []
    leaving, called = [*inside], []
    for _ in line:
        (next_one,) = pools.leave(run_of(leaving.pop(0)), POOL)
        called.append(next_one)
        item = next(item for item in line if item.run == next_one)
        assert pools.enter(item) == (None, [])
        leaving.append(item)
    assert called == [line[2].run, line[1].run, line[0].run, line[3].run]
    assert pools.usage(POOL)[0].active == 2
    assert pools.usage(POOL)[0].waiting == 0


def test_one_that_is_called_has_its_place_while_it_is_on_its_way(pools: Pools, store: Store) -> None:
    first, second, third, newcomer = waiter(), waiter(), waiter(age_s=5), waiter(age_s=60)
    for item in (first, second, third):
        pools.enter(item)
    called = pools.leave(run_of(first), POOL)
    assert called == [third.run]
    assert pools.enter(newcomer)[0] == Full("pool:warehouse", 2)
    send_called(pools, Window(store), called, utcnow())
    (due,) = Window(store).pop([3], LEASE, 10)
    assert due.runs == [third.run]
    assert pools.enter(third) == (None, [])
    assert pools.enter(third) == (None, []), "a second delivery takes no second place"
    assert pools.usage(POOL)[0].active == 2


def test_an_older_run_that_arrives_passes_no_line_but_by_its_rank(pools: Pools) -> None:
    """A place is free and somebody waits: for a moment, while limits change. The first in line goes first."""
    for item in (waiter(), waiter()):
        pools.enter(item)
    waits = waiter(age_s=10)
    pools.enter(waits)
    pools.set_limit(POOL[0], 3)
    full, called = pools.enter(waiter(age_s=1))
    assert full == Full("pool:warehouse", 3)
    assert called == [waits.run]
    pools.set_limit(POOL[0], 4)
    assert pools.enter(waiter(age_s=30)) == (None, []), "before the one that is still in line"


def test_a_run_waits_for_one_pool_at_a_time_and_holds_none_meanwhile(pools: Pools) -> None:
    pools.write_limits({"job:a": 1, "team:1": 1})
    both = ("job:a", "team:1")
    first, second, of_team = waiter(both), waiter(both), waiter(("job:b", "team:1"), age_s=9)
    assert pools.enter(first) == (None, [])
    assert pools.enter(second)[0] == Full("job:a", 1)
    assert pools.enter(of_team)[0] == Full("team:1", 1)
    assert pools.usage(["team:1"])[0].active == 1
    assert pools.leave(run_of(first), both) == [of_team.run], (
        "the job has room, the team's place goes by time"
    )
    assert pools.leave(run_of(of_team), of_team.pools) == [second.run]


def test_a_changed_limit_acts_at_once(pools: Pools) -> None:
    for item in (waiter(), waiter()):
        pools.enter(item)
    line = [waiter(age_s=age) for age in (3, 2, 1)]
    for item in line:
        pools.enter(item)
    pools.set_limit(POOL[0], 4)
    assert pools.call() == [line[0].run, line[1].run]
    pools.set_limit(POOL[0], 1)
    assert pools.call() == []
    pools.set_limit(POOL[0], None)
    assert pools.call() == [line[2].run]


def test_a_place_that_is_not_renewed_ends_and_the_next_is_called(pools: Pools, store: Store) -> None:
    brief = Pools(store, timedelta(milliseconds=150))
    dies, lives, waits = waiter(), waiter(), waiter()
    brief.enter(dies)
    pools.enter(lives)
    pools.enter(waits)
    assert pools.call() == []
    time.sleep(0.2)
    assert pools.call() == [waits.run]


def test_who_takes_up_a_run_has_its_place_and_comes_in_whatever_the_limit(pools: Pools) -> None:
    first, second, third = waiter(), waiter(), waiter()
    for item in (first, second):
        pools.enter(item)
    assert pools.enter(first, force=True) == (None, [])
    assert pools.usage(POOL)[0].active == 2
    assert pools.usage(POOL)[0].exceeded == 0
    for _ in range(2):
        assert pools.enter(third, force=True) == (None, [])
    assert pools.usage(POOL)[0] == Usage(active=3, waiting=0, exceeded=1)


def test_places_that_have_ended_are_not_counted_as_too_many(pools: Pools, store: Store) -> None:
    brief = Pools(store, timedelta(milliseconds=50))
    for item in (waiter(), waiter()):
        brief.enter(item)
    time.sleep(0.1)
    pools.renew({run_of(waiter()): POOL})
    assert pools.enter(waiter(), force=True) == (None, [])
    assert pools.usage(POOL)[0] == Usage(active=2, waiting=0, exceeded=0)


def test_after_redis_lost_everything_workers_renew_before_limits_let_anybody_in(
    pools: Pools, store: Store
) -> None:
    running = [waiter(), waiter()]
    for item in running:
        pools.enter(item)
    store.delete_namespace()
    newcomer, unlimited = waiter(), waiter(("job:x", "team:1"), must_know=False)
    assert pools.enter(newcomer)[0] == Full("pool:warehouse", None)
    assert pools.enter(unlimited) == (None, [])
    assert pools.call() == []
    assert pools.limits() is None
    pools.renew({run_of(item): POOL for item in running})  # nobody knows a limit yet
    pools.write_limits({"pool:warehouse": 2})
    assert pools.call() == []
    assert pools.leave(run_of(running[0]), POOL) == [newcomer.run]
    assert pools.usage(POOL)[0].exceeded == 0


def test_more_than_the_limit_is_counted(pools: Pools) -> None:
    """Places that Redis lost were given to others, and then the workers made theirs anew."""
    for item in (waiter(), waiter()):
        pools.enter(item)
    pools.renew({run_of(waiter()): POOL, run_of(waiter()): POOL})
    assert pools.usage(POOL)[0].exceeded == 2
    assert pools.usage(POOL)[0].active == 4


def test_a_limit_that_comes_later_counts_what_runs_already(pools: Pools) -> None:
    pools.write_limits({})
    running = waiter(("job:a", "team:1"))
    assert pools.enter(running) == (None, [])
    pools.set_limit("job:a", 1)
    pools.renew({run_of(running): running.pools})
    assert pools.enter(waiter(("job:a", "team:1")))[0] == Full("job:a", 1)


def test_who_is_cancelled_waits_no_more(pools: Pools, store: Store) -> None:
    for item in (waiter(), waiter()):
        pools.enter(item)
    cancelled, next_one = waiter(age_s=9), waiter()
    for item in (cancelled, next_one):
        pools.enter(item)
    pools.set_limit(POOL[0], 3)
    assert pools.call() == [cancelled.run]
    leave_lines(Window(store), [run_of(cancelled), uuid4()], utcnow())
    (due,) = Window(store).pop([3], LEASE, 10)
    assert due.runs == [next_one.run]


def test_a_call_that_reached_nobody_is_made_again(
    pools: Pools, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was told of it died before it could pass it on."""
    first, second, waits = waiter(), waiter(), waiter()
    for item in (first, second, waits):
        pools.enter(item)
    assert pools.leave(run_of(first), POOL) == [waits.run]
    assert pools.call() == []
    name = store.tagged_key("pools", "called")
    run = run_of(waits).bytes
    store.batch(lambda pipe: pipe.zadd(name, {run: 1}))  # as if ten seconds had passed
    store.batch(lambda pipe: pipe.zrem(store.tagged_key("pools", "in:pool:warehouse"), run))
    assert pools.call() == [waits.run]
