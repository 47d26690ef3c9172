"""What runs where and how it went: from what was counted and what has not ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from executions.bus.topology import DEAD, RECORDER
from executions.history import append_history
from executions.holding import held
from executions.models import Execution, Minute, Trouble
from executions.overview import (
    failures,
    flow,
    late_starts,
    next_runs,
    queues,
    running,
    unstarted,
    workers,
)
from executions.partitions import EXECUTIONS, partition_name
from executions.presence import PresentWorker, announce
from executions.priorities import Priority
from executions.states import Trigger
from executions.store import Store
from executions.tallies import minute_of
from executions.transitions import record
from scheduler_project.kernel.clock import utcnow
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

S = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def now() -> datetime:
    Minute.objects.all().delete()
    Trouble.objects.all().delete()
    return utcnow()


def test_the_last_hour_has_a_point_for_each_minute(now: datetime) -> None:
    run = make_run(due=now - 5 * MINUTE)
    record([said(QUEUED, run, at=now - 5 * MINUTE), said(STARTED, run, at=now - 4 * MINUTE)], now, keep=True)
    found = flow(now, None)
    assert [at for at, _ in found.minutes] == [minute_of(now) + n * MINUTE for n in range(-59, 1)]
    assert [(counts.due, counts.started) for _, counts in found.minutes[-6:-3]] == [(1, 0), (0, 1), (0, 0)]
    assert (found.total.due, found.total.started, found.overdue) == (1, 1, 0)
    assert 60 <= (found.total.late(0.5) or 0) < 120


def test_what_should_have_been_sent_counts_as_due_and_overdue(now: datetime) -> None:
    make_runs(3, due=now - 2 * MINUTE)
    make_run(due=now + MINUTE)
    make_run(due=now - MINUTE, check_at=held(now - MINUTE))
    make_run(due=now - MINUTE, owner_id=2)
    assert flow(now, frozenset({1})).overdue == 3
    found = flow(now, None)
    assert (found.overdue, found.minutes[-3][1].due, found.minutes[-2][1].due) == (4, 3, 1)


def test_what_is_due_and_has_not_begun_is_counted_by_queue_sent_or_not(now: datetime) -> None:
    """What has begun, waits for leave or is to come is not in it."""
    alone = stored_spec(queue="gpu")
    sent, begun = make_runs(2, alone, due=now - 3 * MINUTE)
    record([said(QUEUED, sent, at=now - 2 * MINUTE), said(QUEUED, begun, at=now - 2 * MINUTE)], now)
    record([said(STARTED, begun, at=now)], now)
    make_runs(3, due=now - MINUTE)
    make_run(due=now + MINUTE)
    make_run(alone, due=now - MINUTE, check_at=held(now - MINUTE))
    in_line = make_run(stored_spec(queue="etl"), due=now - MINUTE, owner_id=2)
    record([said(QUEUED, in_line, at=now - MINUTE, reason="pool_full")], now)
    assert [(item.queue, item.runs, item.since) for item in unstarted(now, None)] == [
        ("runs", 3, now - MINUTE),
        ("etl", 1, None),
        ("gpu", 1, now - 2 * MINUTE),
    ]
    assert [item.queue for item in unstarted(now, frozenset({2}))] == ["etl"]


def test_failures_and_late_starts_are_told_by_job_the_most_first(now: datetime) -> None:
    twice, once = make_runs(2, due=now - MINUTE)
    events = [said(STARTED, twice, at=now - MINUTE + 9 * S), said(FAILED, once, at=now, reason="failed")]
    events += [said(FAILED, twice, attempt, at=now, reason="timed_out") for attempt in (1, 2)]
    append_history(events)
    have_ended(now, twice, once)
    assert [(item.reason, item.count, item.latest) for item in failures(now, None)] == [
        ("timed_out", 2, twice),
        ("failed", 1, once),
    ]
    (late,) = late_starts(now, frozenset({1}))
    assert (late.count, late.worst_s, late.latest) == (1, 9.0, twice)
    assert failures(now, frozenset({2})) == late_starts(now, frozenset()) == []


def test_what_is_planned_next_comes_in_its_order(now: datetime) -> None:
    later, sooner = make_run(due=now + 9 * MINUTE), make_run(due=now + 2 * MINUTE)
    others = make_run(due=now + MINUTE, owner_id=2)
    make_run(due=now + MINUTE, check_at=held(now + MINUTE))
    make_run(due=now - MINUTE)
    assert [run.id for run in next_runs(now, None)] == [others, sooner, later]
    assert [run.id for run in next_runs(now, frozenset({1}))] == [sooner, later]
    assert [run.id for run in next_runs(now, None, limit=1)] == [others]
    assert next_runs(now, frozenset()) == []


def test_workers_are_told_with_what_they_run(now: datetime, store: Store) -> None:
    busy, gone, over = make_runs(3)
    record([said(STARTED, busy, worker="w1"), said(STARTED, gone, worker="w9"), said(STARTED, over)], now)
    record([said(COMPLETED, over)], now)
    for name in ("w2", "w1"):
        announce(store, PresentWorker(name, ["runs"], 8))
    found = workers(store, running(now))
    assert [(item.name, item.worker is not None, [run.id for run in item.runs]) for item in found] == [
        ("w1", True, [busy]),
        ("w2", True, []),
        ("w9", False, [gone]),
    ]


def test_each_queue_is_told_by_priority_with_who_listens() -> None:
    found, own = queues(
        {"etl"}, [PresentWorker("w", ["etl", "runs"], 2), PresentWorker("v", ["runs"], 2)], None
    )
    assert [(item.queue, item.priority, item.workers) for item in found] == [
        *(("etl", priority, 1) for priority in Priority),
        *(("runs", priority, 2) for priority in Priority),
    ]
    assert {RECORDER, DEAD} <= set(own)


FILL = """
INSERT INTO executions_execution
    (id, job_id, spec_id, owner_id, shard, trigger, scheduled_for, state, finished_at, check_at)
SELECT overlay(gen_random_uuid()::text PLACING overlay(at PLACING '-' || substr(at, 9) FROM 9) FROM 1)::uuid,
    gen_random_uuid(), %(spec)s, n %% 5, n %% 16, 'schedule', %(now)s,
    CASE WHEN n %% 100 = 0 THEN 'Waiting' ELSE 'Completed Normally' END,
    CASE WHEN n %% 100 = 0 THEN NULL ELSE %(now)s::timestamptz END,
    CASE WHEN n %% 100 = 0 THEN %(now)s::timestamptz + make_interval(secs => n) END
FROM generate_series(1, 20000) n, LATERAL (
    SELECT lpad(to_hex((extract(epoch FROM %(now)s::timestamptz) * 1000)::bigint + n - 10000), 12, '0') at) id
"""
"""Due from ten seconds ago to ten seconds ahead; one in a hundred waits."""


def plans(ask: Any) -> list[str]:
    """The plans of the queries that ``ask`` makes."""
    with CaptureQueriesContext(connection) as done:
        ask()
    found = []
    with connection.cursor() as cursor:
        for query in done.captured_queries:
            cursor.execute("EXPLAIN (COSTS OFF) " + query["sql"])
            found.append("\n".join(row[0] for row in cursor.fetchall()))
    return found


@pytest.mark.parametrize("teams", [None, frozenset({1}), frozenset({1, 2, 3})])
def test_nothing_is_read_without_an_index(teams: frozenset[int] | None, now: datetime) -> None:
    """Twenty thousand runs of today: what has ended is never looked at."""
    spec = stored_spec()
    with connection.cursor() as cursor:
        cursor.execute(
            FILL,
            {"now": now, "spec": spec.id},
        )
        cursor.execute("ANALYZE executions_execution")
        assert Execution.objects.count() == 20_000
    for ask in (
        lambda: flow(now, teams),
        lambda: unstarted(now, teams),
        lambda: next_runs(now, teams),
        lambda: running(now),
    ):
        for plan in plans(ask):
            assert f"Seq Scan on {partition_name(EXECUTIONS, now.date())}" not in plan, plan


def test_what_has_not_begun_is_late_too_and_joins_the_late_starts(now: datetime) -> None:
    spec = stored_spec()
    job = uuid4()
    began = make_run(spec, job_id=job, due=now - 90 * MINUTE)
    append_history([said(STARTED, began, at=now - 90 * MINUTE + 3 * S)])
    have_ended(now, began)
    stuck = make_run(spec, job_id=job, due=now - 10 * MINUTE)
    make_run(spec, job_id=job, due=now + 10 * MINUTE)
    make_run(spec, job_id=job, due=now - 10 * MINUTE + S, check_at=held(now))
    (found,) = late_starts(now, None)
    assert (found.count, found.undone, found.latest) == (2, 1, stuck)
    assert found.worst_s == pytest.approx(600, abs=2)
    Execution.objects.filter(id=stuck).update(trigger=str(Trigger.CATCH_UP))
    (found,) = late_starts(now, None)
    assert (found.count, found.undone, found.latest) == (1, 0, began)
    assert late_starts(now, frozenset()) == []


def have_ended(now: datetime, *runs: UUID) -> None:
    Execution.objects.filter(id__in=runs).update(state="Completed Abnormally", finished_at=now, check_at=None)
