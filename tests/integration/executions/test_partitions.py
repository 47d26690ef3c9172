from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from beat.queries import SWEEPS
from executions.history import append_history
from executions.ids import lowest_id
from executions.models import Execution, ExecutionEvent
from executions.partitions import EVENTS, EXECUTIONS, maintain, partition_name, partitions_of
from executions.states import State
from executions.transitions import insert, record
from tests.integration.executions.test_transitions import in_threads
from tests.integration.making import COMPLETED, STARTED, make_run, make_runs, new_run, said, stored_spec

DAY = timedelta(days=1)
NOW = datetime(2031, 5, 10, 12, tzinfo=UTC)  # years from the partitions that the migration made
TODAY = NOW.date()
pytestmark = pytest.mark.django_db


def names(table: str, *offsets: int) -> list[str]:
    return [partition_name(table, TODAY + n * DAY) for n in offsets]


def keep_up(now: datetime = NOW, ahead: int = 2, retention: timedelta = 3650 * DAY) -> Any:
    return maintain(now, ahead=ahead, retention=retention)


def ours(table: str) -> list[str]:
    return [name for name in partitions_of(table) if name >= partition_name(table, date(2031, 1, 1))]


def place_of(model: Any, **found: Any) -> str:
    with connection.cursor() as cursor:
        (key, value), *_ = found.items()
        cursor.execute(
            f"SELECT tableoid::regclass::text FROM {model._meta.db_table} WHERE {key} = %s", [value]
        )
        ((name,),) = set(cursor.fetchall())
        return str(name)


def test_the_days_ahead_are_made_once() -> None:
    made = keep_up()
    expected = names(EXECUTIONS, 0, 1, 2), names(EVENTS, 0, 1, 2)
    assert (ours(EXECUTIONS), ours(EVENTS)) == expected
    assert made.created == [*expected[0], *expected[1]]
    assert keep_up().created == []
    assert keep_up(NOW + DAY).created == [*names(EXECUTIONS, 3), *names(EVENTS, 3)]
    run = make_run(due=NOW + DAY)
    assert place_of(Execution, id=run) == names(EXECUTIONS, 1)[0]


def test_a_day_ends_at_midnight_utc() -> None:
    keep_up()
    midnight = datetime(2031, 5, 11, tzinfo=UTC)
    last, first = make_run(due=midnight - timedelta(milliseconds=1)), make_run(due=midnight)
    assert place_of(Execution, id=last) == names(EXECUTIONS, 0)[0]
    assert place_of(Execution, id=first) == names(EXECUTIONS, 1)[0]


def test_rows_leave_the_default_when_their_day_comes_and_events_too() -> None:
    near, far, past = make_run(due=NOW + DAY), make_run(due=NOW + 40 * DAY), make_run(due=NOW - 5 * DAY)
    runs = [near, far, past]
    append_history([said(STARTED, run, message="kept") for run in runs])
    before = (
        sorted(Execution.objects.values_list()),
        sorted(ExecutionEvent.objects.values_list("id", "message")),
    )
    assert {place_of(Execution, id=run) for run in runs} == {f"{EXECUTIONS}_default"}
    for _ in range(2):  # the second finds its work done
        keep_up()
        assert place_of(Execution, id=near) == names(EXECUTIONS, 1)[0]
        assert place_of(ExecutionEvent, execution_id=near) == names(EVENTS, 1)[0]
        assert place_of(Execution, id=past) == names(EXECUTIONS, -5)[0]
        assert place_of(Execution, id=far) == f"{EXECUTIONS}_default"
        assert place_of(ExecutionEvent, execution_id=far) == f"{EVENTS}_default"
    after = (
        sorted(Execution.objects.values_list()),
        sorted(ExecutionEvent.objects.values_list("id", "message")),
    )
    assert after == before
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"DELETE FROM {names(EVENTS, 1)[0]}")
    keep_up(NOW + 39 * DAY)
    assert place_of(Execution, id=far) == names(EXECUTIONS, 40)[0]
    assert make_run(due=NOW + 90 * DAY)


def test_retention_drops_days_that_have_ended_and_keeps_one_that_has_not() -> None:
    keep_up(NOW - 2 * DAY, ahead=5)
    old, unfinished, young = (make_run(due=NOW + n * DAY) for n in (-2, -1, 0))
    events = [said(COMPLETED, old), said(STARTED, unfinished), said(COMPLETED, young)]
    record(events, NOW, keep=True)
    done = keep_up(NOW + DAY, retention=DAY)
    assert set(names(EVENTS, -2) + names(EXECUTIONS, -2)) <= set(done.dropped)
    assert names(EXECUTIONS, -1)[0] in done.kept
    assert set(Execution.objects.values_list("id", flat=True)) == {unfinished, young}
    assert set(ExecutionEvent.objects.values_list("execution_id", flat=True)) == {unfinished, young}
    record([said(COMPLETED, unfinished)], NOW)
    assert names(EXECUTIONS, -1)[0] in keep_up(NOW + DAY, retention=DAY).dropped
    assert keep_up(NOW + DAY, retention=DAY).dropped == []


def test_events_of_runs_that_no_longer_exist_go_with_their_day() -> None:
    stray = lowest_id(NOW - 9 * DAY)
    append_history([said(STARTED, stray)])
    assert names(EVENTS, -9)[0] in keep_up(retention=DAY).dropped
    assert not ExecutionEvent.objects.filter(execution_id=stray).exists()


@pytest.mark.django_db(transaction=True)
def test_two_maintainers_at_once() -> None:
    make_run(due=NOW + DAY)
    try:
        keep_up(NOW - 9 * DAY, ahead=1)
        assert in_threads(*[lambda: keep_up(retention=5 * DAY)] * 3) == []
        assert ours(EXECUTIONS) == names(EXECUTIONS, 0, 1, 2)
        assert ours(EVENTS) == names(EVENTS, 0, 1, 2)
        assert Execution.objects.count() == 1
    finally:
        Execution.objects.all().delete()
        with connection.cursor() as cursor:
            for name in ours(EXECUTIONS) + ours(EVENTS):
                cursor.execute(f"DROP TABLE {name}")


# Plans


def plan_of(query: str, parameters: list[Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE executions_execution")
        cursor.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        cursor.execute("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) " + query, parameters)
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.fixture
def many_rows() -> datetime:
    """Today's partition full of runs, most of which have ended or are due much later."""
    keep_up(ahead=1)
    ended: dict[str, Any] = {"state": State.CANCELLED, "check_at": None, "finished_at": NOW}
    spec = stored_spec()
    insert([new_run(spec, due=NOW, **ended) for _ in range(3000)])
    for shard in (3, 4):
        insert([new_run(spec, due=NOW + timedelta(seconds=n), shard=shard) for n in range(1500)])
    make_runs(5, spec, due=NOW - timedelta(seconds=9))
    return NOW


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("load", [[3], NOW - DAY, NOW - timedelta(seconds=1)]),
        ("load", [[3, 4], NOW, NOW + timedelta(seconds=20)]),
        (
            "overdue",
            [[3, 4], NOW - timedelta(seconds=1), NOW - DAY, uuid4(), NOW - timedelta(seconds=6), 1000],
        ),
    ],
)
def test_what_is_due_is_found_by_the_index_alone(many_rows: datetime, query: str, rows: list[Any]) -> None:
    plan = plan_of(SWEEPS[query], rows)
    partition = names(EXECUTIONS, 0)[0]
    assert f"Seq Scan on {partition}" not in plan, plan
    scans = [line for line in plan.splitlines() if f"{partition}_shard_check_at_idx" in line]
    assert scans, plan


def test_the_highest_shard_is_found_without_reading_all(many_rows: datetime) -> None:
    plan = plan_of(SWEEPS["highest_shard"], [])
    assert f"Seq Scan on {names(EXECUTIONS, 0)[0]}" not in plan, plan
