"""The beat keeps the limits in Redis as the database has them, and calls who may come in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from beat import pools as keeping
from beat.pools import PoolKeeper
from executions.pools import Full, Pools, named_pool
from executions.store import Store
from executions.window import Window
from jobs.models import Pool
from tests.integration.executions.test_pools import waiter

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=30)
NAMES = (named_pool("warehouse"),)


@pytest.fixture
def keeper(store: Store, monkeypatch: pytest.MonkeyPatch) -> PoolKeeper:
    monkeypatch.setattr(keeping, "SETTLE_S", 0.0)
    monkeypatch.setattr(keeping, "COMPARE_S", 0.0)
    Pool.objects.create(name="warehouse", slots=1)
    return PoolKeeper(store)


def test_limits_that_redis_lost_are_written_not_at_the_first_look(keeper: PoolKeeper, store: Store) -> None:
    """In between, the workers make the places of what runs anew."""
    pools = Pools(store, LEASE)
    keeper.run_once()
    assert pools.limits() is None
    keeper.run_once()
    assert pools.limits() == {NAMES[0]: 1}
    store.delete_namespace()
    for _ in range(3):
        keeper.run_once()
    assert pools.limits() == {NAMES[0]: 1}


def test_a_limit_that_sql_has_raised_lets_in_who_waits(keeper: PoolKeeper, store: Store) -> None:
    pools = Pools(store, LEASE)
    for _ in range(2):
        keeper.run_once()
    waits = waiter(NAMES)
    assert pools.enter(waiter(NAMES)) == (None, [])
    assert pools.enter(waits)[0] == Full(NAMES[0], 1)
    Pool.objects.update(slots=2)
    for _ in range(2):
        keeper.run_once()
    (due,) = Window(store).pop([3], LEASE, 10)
    assert due.runs == [waits.run]
