from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from beat import sweeper as sweeping
from beat.ownership import Ownership
from beat.sweeper import Sweeper, SweepTimes
from executions.bus.publishing import EventPublisher
from executions.claims import Claims
from executions.entries import Flag
from executions.models import Execution
from executions.store import Store
from executions.transitions import record, request_cancel
from executions.window import Due, Window
from scheduler_project.kernel.clock import utcnow
from tests.integration.making import FAILED, QUEUED, STARTED, make_run, make_runs, said, stored_spec

pytestmark = pytest.mark.django_db
S = timedelta(seconds=1)
LEASE = timedelta(minutes=1)


@pytest.fixture
def sweeper(window: Window, ownership: Ownership) -> Iterator[Sweeper]:
    events = EventPublisher()
    yield Sweeper(window, ownership, events, SweepTimes(300 * S, 10 * S, 60 * S))
    events.close()


def pop(window: Window, lease: timedelta = LEASE) -> Due:
    return window.pop([3], lease, 1000)[0]


def check_at(run: UUID) -> timedelta:
    """How far from now."""
    found = Execution.objects.values_list("check_at", flat=True).get(id=run)
    assert found is not None
    return found - utcnow()


def test_a_lost_push_is_made_good_within_a_second(
    sweeper: Sweeper, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 4)
    runs, young = make_runs(10, due=utcnow() - 0.6 * S), make_run(due=utcnow())
    for _ in range(3):  # until it is popped it stays once, and in its turn
        assert sweeper.run_once() == sweeping.PERIOD_S <= 0.5
    assert sweeping.GRACE <= 0.5 * S
    assert [run.execution_id for run in pop(window).runs].count(young) == 0
    assert Execution.objects.count() == 11
    sweeper.run_once()
    assert pop(window).runs == []
    assert len(runs) == 10


def test_pushed_runs_are_those_that_were_lost(sweeper: Sweeper, window: Window) -> None:
    runs = make_runs(10, due=utcnow() - 50 * S)
    for _ in range(2):
        sweeper.run_once()
    found = pop(window).runs
    assert sorted(run.execution_id for run in found) == sorted(runs)
    assert {run.flags for run in found} == {Flag.NONE}
    sweeper.run_once()  # in flight
    assert pop(window).runs == []


def test_a_run_that_was_sent_is_left_alone_for_the_enqueue_timeout_and_then_sent_again(
    sweeper: Sweeper, window: Window
) -> None:
    run = make_run(due=utcnow() - 2 * S)
    sweeper.run_once()
    window.confirm(3, pop(window).runs, utcnow(), 600 * S)
    sweeper.run_once()
    assert 298 * S < check_at(run) < 301 * S
    assert pop(window).runs == []
    record([said(QUEUED, run)], utcnow() - 400 * S)
    Execution.objects.filter(id=run).update(check_at=utcnow() - S)
    window.store.batch(lambda pipe: pipe.delete(window.store.key(3, "sent")))
    sweeper.run_once()
    assert [found.execution_id for found in pop(window).runs] == [run]


def test_a_run_whose_worker_is_gone_is_sent_with_reattach(
    sweeper: Sweeper, window: Window, store: Store
) -> None:
    lost, held = make_runs(2)
    record([said(STARTED, lost, worker="dead"), said(STARTED, held, worker="w")], utcnow() - 11 * S)
    Claims(store, "w", LEASE).claim(held, 1)
    sweeper.run_once()
    (found,) = pop(window).runs
    assert (found.execution_id, found.attempt, found.flags) == (lost, 1, Flag.REATTACH)
    assert 18 * S < check_at(lost) < 21 * S
    assert 8 * S < check_at(held) < 11 * S


def test_a_retry_comes_after_its_delay_and_not_before(sweeper: Sweeper, window: Window) -> None:
    run, other = make_runs(2, stored_spec(retries=1, retry_delay_s=60.0))
    record([said(STARTED, run), said(FAILED, run)], utcnow())
    record([said(STARTED, other), said(FAILED, other)], utcnow() - 61 * S)
    sweeper.run_once()
    assert [(found.execution_id, found.attempt) for found in pop(window).runs] == [(other, 2)]


def test_a_run_that_is_to_stop_gets_its_tombstone_again(sweeper: Sweeper, store: Store) -> None:
    run = make_run()
    record([said(STARTED, run)], utcnow() - 11 * S)
    request_cancel(run, utcnow())
    sweeper.run_once()
    assert Claims(store, "w", LEASE).claim(run, 1) == "stopped"
    assert Claims(store, "w", LEASE).claim(run, 1, reattach=True) == "won"


def test_a_row_that_cannot_be_judged_holds_up_no_other(
    sweeper: Sweeper, window: Window, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    broken, lost = make_runs(2)
    record([said(STARTED, broken, worker="w"), said(STARTED, lost, worker="dead")], utcnow() - 11 * S)
    claims = Claims(store, "w", LEASE)
    claims.claim(broken, 1)
    claims.finish(broken, 1, b"no event")
    sweeper.run_once()
    assert [found.execution_id for found in pop(window).runs] == [lost]
    assert 8 * S < check_at(broken) < 11 * S
    assert "row_not_judged" in [line.getMessage() for line in caplog.records]


def test_a_run_that_is_being_changed_is_left_alone_unless_that_takes_too_long(
    sweeper: Sweeper, window: Window
) -> None:
    young, old = make_run(due=utcnow() - 2 * S), make_run(due=utcnow() - 8 * S)
    Execution.objects.update(generation=1)
    sweeper.run_once()
    assert [(run.execution_id, run.generation) for run in pop(window).runs] == [(old, 1)]
    Execution.objects.filter(id=young).update(generation=2)
    sweeper.run_once()
    assert [(run.execution_id, run.generation) for run in pop(window).runs] == [(young, 2)]
