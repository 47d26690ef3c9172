"""Cancelling, and the push from the database into the window."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from access.policy import System
from executions import scheduling, services
from executions.claims import Claimed, Claims, Renewal, fence
from executions.entries import spec_head
from executions.models import Execution, ExecutionEvent
from executions.scheduling import push_due_soon, spec_bodies
from executions.services import Cancelling, cancel_execution
from executions.store import Store
from executions.transitions import insert, record
from executions.window import SLACK, Window
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, NotFound
from tests.integration.making import (
    CANCELLED,
    COMPLETED,
    FAILED,
    QUEUED,
    STARTED,
    make_run,
    make_runs,
    new_run,
    said,
    stored_spec,
)

pytestmark = pytest.mark.django_db(transaction=True)
LEASE = timedelta(seconds=30)


def state_of(run: UUID) -> str:
    return str(Execution.objects.values_list("state", flat=True).get(id=run))


def claim(store: Store, run: UUID, attempt: int = 1) -> Claimed:
    return Claims(store, "worker", LEASE).claim(run, attempt)


def test_a_waiting_run_is_cancelled_at_once_and_cannot_start(store: Store) -> None:
    run = make_run()
    assert cancel_execution(run, System("mia"), utcnow()) is Cancelling.CANCELLED
    assert claim(store, run) is Claimed.STOPPED
    row = Execution.objects.get(id=run)
    assert (row.state, row.reason, row.message) == ("Cancelled", "user", "cancelled by mia")
    (event,) = ExecutionEvent.objects.filter(execution_id=run)
    assert event.type == "JOB_CANCELLED"


def test_a_run_that_waits_for_its_retry_is_cancelled_at_once(store: Store) -> None:
    run = make_run(stored_spec(retries=3))
    record([said(STARTED, run), said(FAILED, run)], utcnow())
    assert cancel_execution(run, System("mia"), utcnow()) is Cancelling.CANCELLED
    assert (state_of(run), claim(store, run, 2)) == ("Cancelled", Claimed.STOPPED)


@pytest.mark.parametrize("recorded", ["in time", "late", "never"])
def test_a_run_that_a_worker_has_just_begun_is_asked_to_stop_and_ends_as_that_says(
    store: Store, recorded: str
) -> None:
    """Nobody has recorded its JOB_STARTED yet, so its row reads Waiting."""
    run, now = make_run(), utcnow()
    claims = Claims(store, "worker", LEASE)
    assert claims.claim(run, 1) is Claimed.WON
    assert cancel_execution(run, System("the next"), now, "replaced") is Cancelling.REQUESTED
    row = Execution.objects.get(id=run)
    assert (row.state, row.cancel_requested_at, row.finished_at) == ("Waiting", now, None)
    assert claims.renew([(run, 1)]) == [Renewal.STOPPED]
    started = said(STARTED, run, at=now - LEASE, worker="w")
    ended = said(CANCELLED, run, at=now + LEASE, worker="w", started_at=now - LEASE, exit_code=143)
    events = {"in time": [started, ended], "late": [ended, started], "never": [ended]}[recorded]
    for event in events:
        record([event], utcnow())
    row.refresh_from_db()
    assert (row.state, row.reason, row.message) == ("Cancelled", "replaced", "cancelled by the next")
    assert (row.started_at, row.finished_at, row.exit_code) == (now - LEASE, now + LEASE, 143)


def test_what_ends_while_it_is_cancelled_has_ended_as_it_did(store: Store) -> None:
    done, failed = make_runs(2, stored_spec(retries=3))
    for run in (done, failed):
        claims = Claims(store, "worker", LEASE)
        claims.claim(run, 1)
        claims.finish(run, 1, b"")
        assert cancel_execution(run, System("mia"), utcnow()) is Cancelling.REQUESTED
    record([said(COMPLETED, done), said(FAILED, failed, reason="failed")], utcnow())
    assert (state_of(done), state_of(failed)) == ("Completed Normally", "Completed Abnormally")


def test_what_was_given_back_unbegun_is_cancelled_at_once_and_what_was_handed_over_is_not(
    store: Store,
) -> None:
    waits, goes_on = make_runs(2)
    claims = Claims(store, "worker", LEASE)
    for run in (waits, goes_on):
        claims.claim(run, 1)
    claims.give_up(waits, 1, begun=False)
    claims.give_up(goes_on, 1)
    assert fence(store, [(waits, 1, 1), (goes_on, 1, 1)]) == [True, False]
    assert cancel_execution(waits, System("mia"), utcnow()) is Cancelling.CANCELLED
    assert cancel_execution(goes_on, System("mia"), utcnow()) is Cancelling.REQUESTED
    assert state_of(goes_on) == "Waiting"


def test_of_cancels_and_claims_that_meet_each_run_has_one_winner(store: Store) -> None:
    runs = make_runs(40)
    meet = Barrier(2)

    def claim_all() -> list[Claimed]:
        meet.wait()
        return [claim(store, run) for run in runs]

    with ThreadPoolExecutor(1) as pool:
        claimed = pool.submit(claim_all)
        meet.wait()
        answers = [cancel_execution(run, System("mia"), utcnow()) for run in reversed(runs)][::-1]
    for answer, how, run in zip(answers, claimed.result(), runs, strict=True):
        begun = how is Claimed.WON
        assert answer is (Cancelling.REQUESTED if begun else Cancelling.CANCELLED)
        assert state_of(run) == ("Waiting" if begun else "Cancelled")
    assert {*answers} == {*Cancelling}


def test_an_active_run_is_asked_to_stop_as_often_as_one_asks(store: Store) -> None:
    run, now = make_run(), utcnow()
    record([said(STARTED, run)], now)
    for _ in range(2):
        assert cancel_execution(run, System("mia"), now) is Cancelling.REQUESTED
    row = Execution.objects.get(id=run)
    assert (row.state, row.cancel_requested_at) == ("Active", now)
    assert claim(store, run) is Claimed.STOPPED


def test_what_has_ended_cannot_be_cancelled(store: Store) -> None:
    run = make_run()
    record([said(COMPLETED, run)], utcnow())
    with pytest.raises(Conflict, match="Completed Normally"):
        cancel_execution(run, System("mia"), utcnow())
    assert claim(store, run) is Claimed.WON
    other = make_run()
    cancel_execution(other, System("mia"), utcnow())
    with pytest.raises(Conflict, match="Cancelled"):
        cancel_execution(other, System("mia"), utcnow())


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        cancel_execution(uuid4(), System("mia"), utcnow())


def test_what_is_due_inside_the_window_is_pushed_after_the_commit(window: Window) -> None:
    now, spec = utcnow(), stored_spec()
    horizon = timedelta(minutes=5) + SLACK
    soon, late = new_run(spec, due=now), new_run(spec, due=now + horizon + timedelta(seconds=1))
    with transaction.atomic():
        push_due_soon(insert([soon, late]), now)
        assert window.pop([3], LEASE, 10)[0].runs == []
    (due,) = window.pop([3], LEASE, 10)
    assert [run.execution_id for run in due.runs] == [soon.id]
    assert due.next_due is None
    assert window.specs({3: [spec_head(spec.id)]}) == {spec_head(spec.id): spec.canonical}


def test_what_is_rolled_back_is_not_pushed(window: Window) -> None:
    now, spec = utcnow(), stored_spec()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        push_due_soon(insert([new_run(spec, due=now)]), now)
        raise ZeroDivisionError
    assert window.pop([3], LEASE, 10)[0].runs == []


def test_where_redis_is_away_the_commit_stands_and_only_what_cannot_have_begun_is_cancelled_at_once(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    for module in (scheduling, services):
        monkeypatch.setattr(module, "default_store", lambda: gone)
    now, spec = utcnow(), stored_spec()
    with transaction.atomic():
        soon, later = new_run(spec, due=now), new_run(spec, due=now + timedelta(hours=1))
        push_due_soon(insert([soon, later]), now)
    assert state_of(soon.id) == "Waiting"
    assert cancel_execution(later.id, System("mia"), now) is Cancelling.CANCELLED
    assert cancel_execution(soon.id, System("mia"), now) is Cancelling.REQUESTED
    row = Execution.objects.get(id=soon.id)
    assert (row.state, row.cancel_requested_at, row.check_at) == ("Waiting", now, now)
    assert record([said(QUEUED, soon.id)], now).changed
    row.refresh_from_db()
    assert row.check_at == now, "the sweep looks at it as soon as Redis answers"
    assert record([said(STARTED, soon.id)], now).unwanted == [soon.id], "and so does the recorder"


def test_the_body_in_the_window_is_the_spec_as_it_was_hashed(store: Store) -> None:
    spec = stored_spec(parameters={"b": 1.0, "a": [1, {"z": None, "y": "ü"}]}, timeout_s=1.5)
    assert spec_bodies({spec.id}) == {spec.id: spec.canonical}
