from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from beat import loader as loading
from beat.loader import Loader
from beat.ownership import Ownership
from executions.entries import spec_head
from executions.store import Store
from executions.transitions import record
from executions.window import Window
from scheduler_project.kernel.clock import from_millis, utcnow
from tests.integration.making import FAILED, QUEUED, STARTED, make_run, make_runs, said, stored_spec

pytestmark = pytest.mark.django_db
LENGTH = timedelta(minutes=5)
LEASE = timedelta(minutes=1)


@pytest.fixture
def loader(window: Window, ownership: Ownership) -> Loader:
    return Loader(window, ownership, LENGTH)


def popped(window: Window, shard: int = 3) -> list[UUID]:
    return [run.execution_id for run in window.pop([shard], LEASE, 1000)[0].runs]


def test_due_runs_come_into_the_window_each_once(
    loader: Loader, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PAGE", 7)
    now, spec = utcnow(), stored_spec()
    mine, others = make_runs(20, spec, due=now), make_runs(3, spec, due=now, shard=9)
    soon, late = make_run(due=now + LENGTH / 2), make_run(due=now + 2 * LENGTH)
    loader.run_once()
    (due,) = window.pop([3], LEASE, 1000)
    assert sorted(run.execution_id for run in due.runs) == sorted(mine)
    assert sorted(popped(window, 9)) == sorted(others)
    assert due.next_due is not None
    assert abs(due.next_due - (now + LENGTH / 2)) < timedelta(milliseconds=2)
    assert window.specs(3, [spec_head(spec.id)]) == {spec_head(spec.id): spec.canonical}
    loader.run_once()
    assert popped(window) == []
    assert soon != late


def test_the_mark_moves_with_the_window(loader: Loader, window: Window, store: Store) -> None:
    before = from_millis(store.now_ms())
    loader.run_once()
    marks = window.loaded_until(range(16))
    assert all(mark is not None and before + LENGTH <= mark for mark in marks.values())
    make_run(due=before + LENGTH / 2)  # inside: whoever commits it pushes it
    loader.run_once()
    assert window.pop([3], LEASE, 10)[0].next_due is None


def test_a_redis_that_has_lost_its_data_is_loaded_anew(
    loader: Loader, window: Window, ownership: Ownership, store: Store
) -> None:
    runs = make_runs(5)
    loader.run_once()
    store.delete_namespace()
    ownership.renew()
    loader.run_once()
    assert sorted(popped(window)) == sorted(runs)


def test_what_is_queued_active_or_ended_is_not_loaded(loader: Loader, window: Window) -> None:
    queued, active, retried = make_run(), make_run(), make_run(stored_spec(retries=1))
    record([said(QUEUED, queued), said(STARTED, active), said(FAILED, retried)], utcnow())
    loader.run_once()
    assert [(run.execution_id, run.attempt) for run in window.pop([3], LEASE, 10)[0].runs] == [(retried, 2)]


def test_who_owns_no_shard_loads_nothing(window: Window, store: Store) -> None:
    make_run()
    assert Loader(window, Ownership(store, "new", 16, LEASE), LENGTH).run_once() == loading.WAIT_FOR_SHARDS_S
    assert popped(window) == []


def test_a_spec_that_redis_has_lost_is_brought(loader: Loader, window: Window) -> None:
    spec = stored_spec(command="echo lost")
    loader.run_once()
    loader.want_spec(5, spec_head(spec.id))
    loader.want_spec(5, b"unknown!")
    loader.run_once()
    assert window.specs(5, [spec_head(spec.id)]) == {spec_head(spec.id): spec.canonical}
