"""A run that waits is moved at once, wherever it is on its way to a worker."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection

from access.policy import System
from executions.claims import Claimed, Claims
from executions.entries import Entry, Popped
from executions.models import Execution, ExecutionEvent
from executions.rescheduling import reschedule_execution
from executions.scheduling import push_due_soon
from executions.store import Store
from executions.transitions import record
from executions.window import Window
from scheduler_project.kernel.clock import from_millis, utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound
from tests.integration.making import COMPLETED, QUEUED, STARTED, make_run, said

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
LEASE = timedelta(seconds=30)


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def run_due(due: datetime, now: datetime) -> UUID:
    """A run in the database, and in its bucket where it is due soon."""
    run = make_run(due=due)
    push_due_soon([entry_of(run)], now)
    return run


def entry_of(run: UUID) -> Entry:
    row = Execution.objects.get(id=run)
    assert row.check_at is not None
    return Entry(
        execution_id=run, spec_id=row.spec_id, attempt=1, due=row.check_at, generation=row.generation
    )


def pop(window: Window) -> list[Popped]:
    return window.pop([3], LEASE, 100)[0].runs


def send(window: Window, runs: list[Popped], now: datetime) -> None:
    window.confirm(runs, now, 10 * HOUR)


def claim(window: Window, run: Popped) -> Claimed:
    return Claims(window.store, "w", LEASE).claim(run.execution_id, run.attempt, generation=run.generation)


def next_due(window: Window) -> datetime | None:
    return window.pop([3], LEASE, 100)[0].next_due


def test_a_run_in_its_bucket_is_moved_to_later(window: Window, now: datetime) -> None:
    run = run_due(now, now)
    assert reschedule_execution(run, now + 2 * 60 * SECOND, System("mia"), now) == now + 120 * SECOND
    assert pop(window) == []
    assert next_due(window) == from_millis(entry_of(run).score)


def test_a_run_in_its_bucket_is_moved_to_now(window: Window, now: datetime) -> None:
    run = run_due(now + 200 * SECOND, now)
    reschedule_execution(run, now - HOUR, System("mia"), now)
    assert [(item.execution_id, item.generation) for item in pop(window)] == [(run, 2)]
    assert next_due(window) is None


def test_a_run_in_flight_is_moved_to_later(window: Window, now: datetime) -> None:
    run = run_due(now, now)
    (old,) = window.pop([3], timedelta(0), 100)[0].runs
    reschedule_execution(run, now + 120 * SECOND, System("mia"), now)
    assert pop(window) == []  # its lease has ended
    assert claim(window, old) is Claimed.STALE


def test_a_run_that_is_queued_is_moved_out_of_the_window_and_back(window: Window, now: datetime) -> None:
    run = run_due(now, now)
    (old,) = pop(window)
    send(window, [old], now)
    record([said(QUEUED, run)], now)
    reschedule_execution(run, now + 5 * HOUR, System("mia"), now)
    row = Execution.objects.get(id=run)
    assert (row.check_at, row.queued_at) == (now + 5 * HOUR, None)
    assert claim(window, old) is Claimed.STALE
    record([said(QUEUED, run)], now)  # of the first time it was sent: late, and void
    assert Execution.objects.get(id=run).check_at == now + 5 * HOUR
    reschedule_execution(run, now, System("mia"), now)
    (new,) = pop(window)
    assert claim(window, new) is Claimed.WON


def test_a_run_keeps_its_id_and_its_history_says_who_moved_it(now: datetime) -> None:
    run = run_due(now + 3 * HOUR, now)
    reschedule_execution(run, now + HOUR, System("mia"), now)
    row = Execution.objects.get(id=run)
    assert (row.scheduled_for, row.check_at) == (now + 3 * HOUR, now + HOUR)
    assert row.reason == "rescheduled"
    (event,) = ExecutionEvent.objects.filter(execution_id=run)
    assert event.message.endswith("by mia")


def test_what_does_not_wait_is_not_moved(window: Window, now: datetime) -> None:
    claimed, active, ended = (run_due(now, now) for _ in range(3))
    for item in pop(window):
        claim(window, item)
    record([said(STARTED, active), said(STARTED, ended), said(COMPLETED, ended)], now)
    for run, words in ((claimed, "begun"), (active, "Active"), (ended, "Completed Normally")):
        with pytest.raises(Conflict, match=words):
            reschedule_execution(run, now + HOUR, System("mia"), now)
    with pytest.raises(NotFound):
        reschedule_execution(uuid4(), now, System("mia"), now)
    with pytest.raises(InvalidFields):
        reschedule_execution(claimed, now + 100_000 * HOUR, System("mia"), now)


def test_a_run_is_claimed_or_moved_but_never_both(window: Window, now: datetime) -> None:
    for _ in range(20):
        run = run_due(now, now)
        (old,) = pop(window)
        barrier = threading.Barrier(2, timeout=10)
        with ThreadPoolExecutor() as pool:
            moved = pool.submit(_move, run, now, barrier)
            claimed = pool.submit(_claim, window, old, barrier)
        assert (moved.result(), claimed.result()) in {("moved", Claimed.STALE), ("refused", Claimed.WON)}


def _claim(window: Window, run: Popped, barrier: threading.Barrier) -> Claimed:
    barrier.wait()
    return claim(window, run)


def _move(run: UUID, now: datetime, barrier: threading.Barrier) -> str:
    try:
        barrier.wait()
        reschedule_execution(run, now + HOUR, System("mia"), now)
    except Conflict:
        return "refused"
    finally:
        connection.close()
    return "moved"
