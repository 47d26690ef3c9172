from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from beat import sweeper as sweeping
from beat.ownership import Ownership
from beat.sweeper import Sweeper, SweepTimes
from executions.bus.publishing import EventPublisher
from executions.claims import Claims, claim_key, heard
from executions.entries import Flag
from executions.freshness import Stale
from executions.models import Execution
from executions.pools import Full, Pools, Usage
from executions.presence import PresentWorker, announce
from executions.store import Store
from executions.transitions import record, request_cancel
from executions.window import Due, Window
from scheduler_project.kernel.clock import utcnow
from tests.integration.beat.test_loader import stalls_after_reading
from tests.integration.executions.test_pools import waiter
from tests.integration.making import (
    COMPLETED,
    FAILED,
    QUEUED,
    STARTED,
    make_run,
    make_runs,
    said,
    stored_spec,
)

pytestmark = pytest.mark.django_db
S = timedelta(seconds=1)
LEASE = timedelta(minutes=1)


@pytest.fixture
def sweeper(window: Window, ownership: Ownership) -> Iterator[Sweeper]:
    events = EventPublisher()
    yield Sweeper(window, ownership, events, SweepTimes(300 * S, 10 * S, 60 * S, 120 * S))
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


def test_rows_that_a_stalled_beat_read_long_ago_are_not_pushed_but_read_again(
    sweeper: Sweeper, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(due=utcnow() - 2 * S)
    with monkeypatch.context() as stalled:
        stalls_after_reading(stalled)
        with pytest.raises(Stale):
            sweeper.run_once()
        assert pop(window).runs == []
    sweeper.run_once()
    assert [found.execution_id for found in pop(window).runs] == [run]


def test_a_run_that_was_sent_is_left_alone_for_the_enqueue_timeout_and_then_sent_again(
    sweeper: Sweeper, window: Window, store: Store
) -> None:
    announce(store, PresentWorker("w", ["runs"], 1))
    run = make_run(due=utcnow() - 2 * S)
    sweeper.run_once()
    window.confirm(pop(window).runs, utcnow(), 600 * S)
    sweeper.run_once()
    assert 298 * S < check_at(run) < 301 * S
    assert pop(window).runs == []
    record([said(QUEUED, run)], utcnow() - 400 * S)
    Execution.objects.filter(id=run).update(check_at=utcnow() - S)
    window.store.batch(lambda pipe: pipe.delete(window.store.key(3, "sent")))
    sweeper.run_once()
    assert [found.execution_id for found in pop(window).runs] == [run]
    assert outcome_kept(store, run) > timedelta(hours=23), "the first message may be in a long queue yet"


def outcome_kept(store: Store, run: UUID) -> timedelta:
    """For how long, once it has ended, and that is recorded."""
    worker = Claims(store, "w", LEASE)
    worker.claim(run, 1)
    worker.finish(run, 1, b"outcome")
    heard(store, [(run, 1)], S)
    (left_ms,) = store.batch(lambda pipe: pipe.pttl(claim_key(store, run)))
    return timedelta(milliseconds=left_ms)


def test_a_run_that_was_sent_once_is_remembered_shortly(store: Store) -> None:
    assert outcome_kept(store, make_run()) <= S


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
    assert 50 * S < check_at(held) < LEASE  # when its claim ends


def test_a_run_that_nobody_watches_keeps_its_places(sweeper: Sweeper, store: Store) -> None:
    """However long all workers are away; what has ended does not, and for what is watched its worker does."""
    pools = Pools(store, LEASE)
    pools.write_limits({"pool:narrow": 2})
    goes_on, watched, over = make_runs(3, stored_spec(pool="narrow"))
    record([said(STARTED, run) for run in (goes_on, watched, over)], utcnow() - 11 * S)
    record([said(COMPLETED, over)], utcnow())
    Claims(store, "w", LEASE).claim(watched, 1)
    for _ in range(2):
        sweeper.run_once()
        Execution.objects.filter(id=goes_on).update(check_at=utcnow() - S)
    assert pools.usage(["pool:narrow"]) == [Usage(active=1, waiting=0, exceeded=0)]
    assert pools.enter(waiter(("pool:narrow",)))[0] is None
    assert pools.enter(waiter(("pool:narrow",)))[0] == Full("pool:narrow", 2)


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


def test_a_cancel_that_nobody_carried_out_is_carried_out_once_nothing_can_have_begun(
    sweeper: Sweeper, window: Window, store: Store
) -> None:
    """Whoever cancelled these died at once, or Redis was away."""
    free, claimed, given_back, gone, gone_long_ago = runs = make_runs(5, due=utcnow() - S)
    claims = Claims(store, "w", LEASE)
    for run in runs[1:]:
        claims.claim(run, 1)
        request_cancel(run, utcnow() - (301 * S if run == gone_long_ago else S))
    request_cancel(free, utcnow() - S, "replaced", "cancelled by the next")
    claims.give_up(given_back, 1, begun=False)
    for run in (gone, gone_long_ago):
        claims.give_up(run, 1)  # as it is when the lease has ended: its site stays
    sweeper.run_once()
    rows = {row.id: row for row in Execution.objects.all()}
    assert [rows[run].state for run in runs] == ["Cancelled", "Waiting", "Cancelled", "Waiting", "Cancelled"]
    assert (rows[free].reason, rows[free].message) == ("replaced", "cancelled by the next")
    assert (rows[given_back].reason, rows[given_back].message) == ("user", "cancelled before it was started")
    assert 8 * S < check_at(gone) < 11 * S
    assert check_at(claimed) > 50 * S
    assert {claims.claim(run, 1) for run in (free, given_back, gone)} == {"stopped"}
    assert claims.renew([(claimed, 1)]) == ["stopped"]
    assert pop(window).runs == []


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


def test_what_lies_in_a_queue_that_nobody_serves_is_not_sent_there_again(
    sweeper: Sweeper, window: Window, store: Store
) -> None:
    now = utcnow()
    sent = make_run(stored_spec(queue="nobody"), due=now - 400 * S)
    record([said(QUEUED, sent, at=now - 399 * S)], now - 399 * S)
    lost = make_run(stored_spec(queue="nobody"), due=now - 10 * S)  # of which nothing is known to have left
    sweeper.run_once()
    assert [run.execution_id for run in pop(window).runs] == [lost]
    assert 298 * S < check_at(sent) <= 300 * S
    Execution.objects.filter(id=sent).update(check_at=now - S)
    announce(store, PresentWorker("w", ["runs"], 1))
    sweeper.run_once()
    assert pop(window).runs == []
    Execution.objects.filter(id=sent).update(check_at=now - S)
    announce(store, PresentWorker("other", ["nobody"], 1))
    sweeper.run_once()
    assert [run.execution_id for run in pop(window).runs] == [sent]


def test_a_queue_that_is_served_and_long_gets_one_copy_of_a_run_in_each_pause(
    sweeper: Sweeper, window: Window, store: Store
) -> None:
    """However often it is swept; and whichever message comes first, the others find it claimed."""
    announce(store, PresentWorker("w", ["runs"], 1))
    run, now = make_run(due=utcnow() - 400 * S), utcnow()
    record([said(QUEUED, run, at=now - 399 * S)], now - 399 * S)
    for copies in range(1, 3):
        sent = 0
        for _ in range(5):
            Execution.objects.filter(id=run).update(check_at=now - S)
            sweeper.run_once()
            runs = pop(window).runs
            window.confirm(runs, utcnow(), 300 * S)
            sent += len(runs)
        assert sent == 1, f"time-out {copies}"
        window.store.batch(lambda pipe: pipe.delete(window.store.key(3, "sent")))  # it has passed
    Claims(store, "w", LEASE).claim(run, 1)
    Execution.objects.filter(id=run).update(check_at=now - S)
    sweeper.run_once()
    assert pop(window).runs == []
