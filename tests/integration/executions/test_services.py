"""Cancelling, and the push from the database into the window."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from executions import scheduling
from executions.claims import Claimed, Claims
from executions.entries import spec_head
from executions.models import Execution, ExecutionEvent
from executions.scheduling import push_due_soon, spec_bodies
from executions.services import Cancelling, cancel_execution
from executions.store import Store
from executions.transitions import insert, record
from executions.window import SLACK, Window
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, NotFound
from tests.integration.making import COMPLETED, FAILED, STARTED, make_run, new_run, said, stored_spec

pytestmark = pytest.mark.django_db(transaction=True)
LEASE = timedelta(seconds=30)


def state_of(run: UUID) -> str:
    return str(Execution.objects.values_list("state", flat=True).get(id=run))


def claim(store: Store, run: UUID, attempt: int = 1) -> Claimed:
    return Claims(store, "worker", LEASE).claim(run, attempt)


def test_a_waiting_run_is_cancelled_at_once_and_cannot_start(store: Store) -> None:
    run = make_run()
    assert cancel_execution(run, "mia", utcnow()) is Cancelling.CANCELLED
    assert claim(store, run) is Claimed.STOPPED
    row = Execution.objects.get(id=run)
    assert (row.state, row.reason, row.message) == ("Cancelled", "user", "cancelled by mia")
    (event,) = ExecutionEvent.objects.filter(execution_id=run)
    assert event.type == "JOB_CANCELLED"


def test_a_run_that_waits_for_its_retry_is_cancelled_at_once(store: Store) -> None:
    run = make_run(stored_spec(retries=3))
    record([said(STARTED, run), said(FAILED, run)], utcnow())
    assert cancel_execution(run, "mia", utcnow()) is Cancelling.CANCELLED
    assert (state_of(run), claim(store, run, 2)) == ("Cancelled", Claimed.STOPPED)


def test_an_active_run_is_asked_to_stop_as_often_as_one_asks(store: Store) -> None:
    run, now = make_run(), utcnow()
    record([said(STARTED, run)], now)
    for _ in range(2):
        assert cancel_execution(run, "mia", now) is Cancelling.REQUESTED
    row = Execution.objects.get(id=run)
    assert (row.state, row.cancel_requested_at) == ("Active", now)
    assert claim(store, run) is Claimed.STOPPED


def test_what_has_ended_cannot_be_cancelled(store: Store) -> None:
    run = make_run()
    record([said(COMPLETED, run)], utcnow())
    with pytest.raises(Conflict, match="Completed Normally"):
        cancel_execution(run, "mia", utcnow())
    assert claim(store, run) is Claimed.WON
    other = make_run()
    cancel_execution(other, "mia", utcnow())
    with pytest.raises(Conflict, match="Cancelled"):
        cancel_execution(other, "mia", utcnow())


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        cancel_execution(uuid4(), "mia", utcnow())


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
    assert window.specs(3, [spec_head(spec.id)]) == {spec_head(spec.id): spec.canonical}


def test_what_is_rolled_back_is_not_pushed(window: Window) -> None:
    now, spec = utcnow(), stored_spec()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        push_due_soon(insert([new_run(spec, due=now)]), now)
        raise ZeroDivisionError
    assert window.pop([3], LEASE, 10)[0].runs == []


def test_where_redis_is_away_the_commit_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    monkeypatch.setattr(scheduling, "default_store", lambda: gone)
    now = utcnow()
    with transaction.atomic():
        new = new_run(stored_spec(), due=now)
        push_due_soon(insert([new]), now)
    assert state_of(new.id) == "Waiting"
    assert cancel_execution(new.id, "mia", now) is Cancelling.CANCELLED


def test_the_body_in_the_window_is_the_spec_as_it_was_hashed(store: Store) -> None:
    spec = stored_spec(parameters={"b": 1.0, "a": [1, {"z": None, "y": "ü"}]}, timeout_s=1.5)
    assert spec_bodies({spec.id}) == {spec.id: spec.canonical}
