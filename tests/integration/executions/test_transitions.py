from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from executions import planning
from executions.events import REATTACHED
from executions.history import append_history
from executions.models import Execution, ExecutionEvent
from executions.planning import EndedRun, NewExecution, Progress
from executions.queries import TRANSITIONS
from executions.states import EventType, State
from executions.transitions import insert, postpone, record, request_cancel
from scheduler_project.kernel.clock import utcnow
from tests.integration.making import (
    CANCELLED,
    COMPLETED,
    FAILED,
    LOST,
    QUEUED,
    STARTED,
    make_run,
    make_runs,
    new_run,
    said,
    stored_spec,
)

S = timedelta(seconds=1)
pytestmark = pytest.mark.django_db


def row_of(run: UUID) -> dict[str, Any]:
    return dict(Execution.objects.filter(id=run).values().get())


def test_a_run_to_its_end_is_one_row_with_its_times() -> None:
    run, now = make_run(), utcnow()
    events = [
        said(QUEUED, run, at=now),
        said(STARTED, run, at=now + S, worker="w", queued_at=now),
        said(COMPLETED, run, at=now + 2 * S, worker="w", queued_at=now, started_at=now + S, exit_code=0),
    ]
    done = record(events, now)
    assert [changed.id for changed in done.changed] == [run]
    row = row_of(run)
    assert (row["state"], row["exit_code"], row["worker"], row["check_at"]) == (
        "Completed Normally",
        0,
        "w",
        None,
    )
    assert (row["queued_at"], row["started_at"], row["finished_at"]) == (now, now + S, now + 2 * S)


def test_the_same_events_again_change_nothing() -> None:
    run, now = make_run(stored_spec(retries=1)), utcnow()
    events = [said(STARTED, run, worker="w"), said(FAILED, run, exit_code=3, reason="failed")]
    first = record(events, now, keep=True)
    before, history = row_of(run), list(ExecutionEvent.objects.values().order_by("id"))
    assert [entry.attempt for entry in first.entries] == [2]
    again = record(events, now + S, keep=True)
    assert (again.changed, again.entries) == ([], [])
    assert row_of(run) == before
    assert list(ExecutionEvent.objects.values().order_by("id")) == history
    assert sorted(event["type"] for event in history) == ["JOB_FAILED", "JOB_RETRYING", "JOB_STARTED"]


def test_a_retry_is_due_after_its_delay_and_given_to_the_window() -> None:
    run, now = make_run(stored_spec(retries=2, retry_delay_s=90.0)), utcnow()
    (entry,) = record([said(FAILED, run, exit_code=3)], now).entries
    assert (entry.execution_id, entry.attempt, entry.due) == (run, 2, now + 90 * S)
    row = row_of(run)
    assert (row["state"], row["attempt"], row["failures"], row["check_at"]) == ("Waiting", 2, 1, now + 90 * S)


def test_events_of_no_row_are_told_and_stop_nobody() -> None:
    run, stray = make_run(), said(STARTED, uuid4())
    done = record([stray, said(STARTED, run)], utcnow(), keep=True)
    assert done.unknown == [stray]
    assert row_of(run)["state"] == "Active"
    assert not ExecutionEvent.objects.filter(execution_id=stray.execution_id).exists()
    assert record([], utcnow()).changed == []


def test_a_cancelled_run_that_began_all_the_same_is_unwanted() -> None:
    run = make_run()
    record([said(CANCELLED, run)], utcnow())
    assert record([said(STARTED, run)], utcnow()).unwanted == [run]
    assert row_of(run)["state"] == "Cancelled"


@pytest.mark.parametrize(("outcome", "state"), [(FAILED, "Completed Abnormally"), (LOST, "Cancelled")])
def test_a_run_that_was_asked_to_stop_ends_whatever_became_of_it(outcome: EventType, state: str) -> None:
    run, now = make_run(stored_spec(retries=5)), utcnow()
    record([said(STARTED, run)], now)
    assert request_cancel(run, now)
    assert record([said(outcome, run)], now).entries == []
    assert row_of(run)["state"] == state
    assert not request_cancel(run, now)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[EndedRun]:
    """What the planner was told; it makes a run of each, and looks whether it is in the transaction."""
    told: list[EndedRun] = []

    def plan(progress: Progress, now: datetime) -> list[NewExecution]:
        ended = progress.ended
        told.extend(ended)
        assert connection.in_atomic_block
        assert all(Execution.objects.get(id=run.id).finished_at for run in ended)
        return [new_run(stored_spec(), due=now + S) for _ in ended]

    monkeypatch.setattr(planning, "_planners", [plan])
    return told


def test_an_end_is_planned_on_in_the_same_transaction(planned: list[EndedRun]) -> None:
    ended, failed, active = make_runs(3)
    now = utcnow()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record([said(COMPLETED, ended)], now)
        assert Execution.objects.count() == 4
        raise ZeroDivisionError
    assert Execution.objects.count() == 3
    assert row_of(ended)["state"] == "Waiting"
    planned.clear()
    done = record([said(COMPLETED, ended), said(FAILED, failed), said(STARTED, active)], now)
    assert {(run.id, run.state) for run in planned} == {
        (ended, State.COMPLETED_NORMALLY),
        (failed, State.COMPLETED_ABNORMALLY),
    }
    assert [entry.due for entry in done.entries] == [now + S, now + S]
    record([said(COMPLETED, ended)], now)
    assert len(planned) == 2


def test_inserting_twice_makes_one_row_and_one_entry() -> None:
    new = new_run(stored_spec())
    (entry,) = insert([new, new])
    assert (entry.execution_id, entry.attempt, entry.due) == (new.id, 1, new.check_at)
    record([said(STARTED, new.id)], utcnow())
    assert insert([new]) == []
    assert row_of(new.id)["state"] == "Active"
    assert insert([]) == []


def test_a_skipped_fire_is_a_row_with_its_reason_and_its_history() -> None:
    now = utcnow()
    fields: dict[str, Any] = {"state": State.CANCELLED, "reason": "skipped_misfire", "missed": 7}
    new = new_run(stored_spec(), check_at=None, finished_at=now, **fields)
    assert insert([new, new]) == []
    row = row_of(new.id)
    assert (row["state"], row["reason"], row["missed"]) == ("Cancelled", "skipped_misfire", 7)
    (event,) = ExecutionEvent.objects.filter(execution_id=new.id)
    assert (event.type, event.reason, event.at) == ("JOB_SKIPPED", "skipped_misfire", now)


def test_a_check_is_moved_only_where_nobody_else_has_moved_it() -> None:
    due = utcnow()
    first, second = make_runs(2, due=due)
    postpone([(first, due, due + S), (second, due - S, due + S)])
    assert row_of(first)["check_at"] == due + S
    assert row_of(second)["check_at"] == due
    postpone([])


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("state = 'Sleeping', check_at = NULL", "execution_state_known"),
        ("state = 'Cancelled', check_at = NULL", "execution_finished_iff_terminal"),
        ("finished_at = now()", "execution_finished_iff_terminal"),
        ("check_at = NULL", "execution_checked_iff_waiting_or_active"),
        ("state = 'Paused'", "execution_checked_iff_waiting_or_active"),
        ("attempt = 0", "execution_attempt_counts"),
    ],
)
def test_the_database_enforces_by_name(change: str, constraint: str) -> None:
    run = make_run()
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE executions_execution SET {change} WHERE id = %s", [run])


def test_a_run_without_its_spec_is_refused() -> None:
    with pytest.raises(IntegrityError, match="spec_id"), transaction.atomic():
        insert([replace(new_run(stored_spec()), spec_id=uuid4())])
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize("change", ["UPDATE {} SET message = 'x'", "DELETE FROM {}"])
@pytest.mark.parametrize("table", ["executions_executionevent", "executions_executionevent_default"])
def test_history_is_append_only_by_every_way(change: str, table: str) -> None:
    append_history([said(STARTED, make_run(due=utcnow() + timedelta(days=400)))])
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change.format(table))
    assert ExecutionEvent.objects.count() == 1


def test_update_of_rows_is_guarded_by_what_they_were_read_as() -> None:
    """``update_runs`` alone, without the lock before it."""
    run = make_run()
    values: list[Any] = [[run], ["Active"], [1], ["Cancelled"], [1], [0], [0], [""], [""], [""], [None]]
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS["update_runs"], [*values, *[[None]] * 3, [utcnow()], [None], run, run])
        assert cursor.fetchall() == []
    assert row_of(run)["state"] == "Waiting"


def in_threads(*calls: Callable[[], object]) -> list[BaseException]:
    """Run them at once, each with a connection of its own; what they raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        connection.ensure_connection()
        barrier.wait()
        try:
            call()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.django_db(transaction=True)
def test_recorders_and_an_auditor_on_the_same_events_at_once(planned: list[EndedRun]) -> None:
    """They meet on every row, in other orders: no deadlock, each row as one recorder would make it."""
    runs, now = make_runs(60, stored_spec(retries=1)), utcnow()
    events = [
        said(kind, run, **fields)
        for run in runs
        for kind, fields in ((STARTED, {"worker": "w"}), (FAILED, {"exit_code": 3, "started_at": now}))
    ]
    failures = [said(FAILED, run, 2, exit_code=4) for run in runs]

    def recorder(seed: int) -> Callable[[], object]:
        def work() -> None:
            shuffled = random.Random(seed)
            for _ in range(3):
                mixed = shuffled.sample(events, len(events))
                with transaction.atomic():
                    record(mixed, now, keep=True)
            with transaction.atomic():
                record(shuffled.sample(failures, len(failures)), now, keep=True)

        return work

    def auditor() -> None:
        for _ in range(3):
            with transaction.atomic():
                append_history(random.Random(9).sample(events + failures, 180))

    assert in_threads(recorder(1), recorder(2), auditor) == []
    rows = Execution.objects.filter(id__in=runs).values_list("state", "attempt", "failures", "exit_code")
    assert set(rows) == {("Completed Abnormally", 2, 2, 4)}
    assert len(planned) == 60
    assert Execution.objects.count() == 120
    assert ExecutionEvent.objects.count() == 60 * 4


@pytest.mark.django_db(transaction=True)
def test_who_make_the_same_runs_at_once_do_not_deadlock() -> None:
    spec = stored_spec()
    new = [new_run(spec) for _ in range(300)]

    def maker(seed: int) -> Callable[[], object]:
        def work() -> None:
            with transaction.atomic():
                insert(random.Random(seed).sample(new, len(new)))

        return work

    assert in_threads(maker(1), maker(2), maker(3)) == []
    assert Execution.objects.count() == 300


@pytest.mark.django_db(transaction=True)
def test_who_append_the_same_history_at_once_do_not_deadlock() -> None:
    rounds = [[said(STARTED, uuid4(), worker="w") for _ in range(100)] for _ in range(40)]
    together = threading.Barrier(3, timeout=30)

    def auditor(seed: int) -> Callable[[], object]:
        def work() -> None:
            mixed = random.Random(seed)
            for events in rounds:
                together.wait()
                with transaction.atomic():
                    append_history(mixed.sample(events, len(events)))

        return work

    assert in_threads(auditor(1), auditor(2), auditor(3)) == []
    assert ExecutionEvent.objects.count() == 4000


def test_a_second_start_of_an_attempt_is_counted_and_a_reattached_one_is_not() -> None:
    run, other = make_runs(2)
    first = said(STARTED, run, worker="a")
    again, attached = said(STARTED, run, worker="b"), said(STARTED, run, worker="c", reason=REATTACHED)
    assert record([first], utcnow()).started_again == []
    assert record([first, attached], utcnow()).started_again == []
    assert record([first, again], utcnow()).started_again == [again]
    both = [said(STARTED, other, worker=name) for name in "ab"]
    assert record(both[::-1], utcnow()).started_again == both[1:]
