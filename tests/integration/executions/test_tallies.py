"""What the history counts as it is written: once, whoever writes it, and cheap to read."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext

from executions.events import REATTACHED
from executions.history import append_history
from executions.models import Execution, Minute, Trouble
from executions.queries import HISTORY
from executions.states import Trigger
from executions.tallies import BOUNDS_S, Counts, bucket_of, counted, minute_of, percentile, tidy, together
from executions.transitions import record
from tests.integration.executions.test_transitions import in_threads
from tests.integration.making import (
    CANCELLED,
    COMPLETED,
    FAILED,
    LOST,
    QUEUED,
    STARTED,
    make_run,
    make_runs,
    said,
    stored_spec,
)

S = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DUE = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty() -> None:
    Minute.objects.all().delete()
    Trouble.objects.all().delete()


def of(minute: datetime, teams: list[int] | None = None) -> Counts:
    return counted(minute, minute + MINUTE, teams).get(minute, Counts())


def life(run: Any, *, late: timedelta = S / 4, lasts: timedelta = 10 * S) -> list[Any]:
    """The events of a run that is due at DUE and ends well."""
    return [
        said(QUEUED, run, at=DUE + late / 2),
        said(STARTED, run, at=DUE + late, worker="w"),
        said(COMPLETED, run, at=DUE + late + lasts, worker="w"),
    ]


def test_a_run_counts_where_it_was_due_started_and_ended() -> None:
    append_history(life(make_run(due=DUE), late=50 * S, lasts=20 * S))
    assert of(DUE) == Counts(due=1, started=1, lateness={bucket_of(50): 1})
    assert of(DUE + MINUTE) == Counts(completed=1)


def test_a_retry_is_late_by_what_passed_since_it_was_asked_for() -> None:
    run = make_run(due=DUE - timedelta(days=3), retry_of=uuid4())
    asked = Execution.objects.get(id=run).created_at
    append_history([said(QUEUED, run, at=asked), said(STARTED, run, at=asked + S / 4, worker="w")])
    found = together(counted(minute_of(asked), minute_of(asked) + 2 * MINUTE, None).values())
    assert (found.due, found.lateness) == (1, {bucket_of(0.25): 1})
    assert not Trouble.objects.exists()


def test_the_same_events_again_count_nothing() -> None:
    events = life(make_run(due=DUE))
    append_history(events)
    append_history(events)
    append_history([*events, said(CANCELLED, make_run(due=DUE), at=DUE)])
    assert of(DUE) == Counts(due=1, started=1, completed=1, cancelled=1, lateness={bucket_of(0.25): 1})


def test_a_failure_that_another_attempt_followed_is_no_end() -> None:
    run = make_run(stored_spec(retries=1), due=DUE)
    for attempt in (1, 2):
        events = [
            said(STARTED, run, attempt, at=DUE + S),
            said(FAILED, run, attempt, at=DUE + 2 * S, reason="failed"),
        ]
        append_history(events)  # the auditor's part; the recorder adds that it is tried again
        record(events, DUE + 3 * S)
    minute = of(DUE)
    assert (minute.started, minute.failed, minute.undone, minute.abnormal) == (2, 2, 1, 1)
    assert sum(minute.lateness.values()) == 1
    (trouble,) = Trouble.objects.all()
    assert (trouble.what, trouble.reason, trouble.count, trouble.undone) == ("failed", "failed", 2, 1)
    assert trouble.latest == run


def test_a_run_that_was_lost_while_it_was_to_stop_is_cancelled_and_not_failed() -> None:
    run = make_run(due=DUE)
    append_history([said(LOST, run, at=DUE, reason="lost"), said(CANCELLED, run, at=DUE, reason="lost")])
    assert (of(DUE).abnormal, of(DUE).cancelled) == (0, 1)


def test_a_container_that_is_taken_up_again_starts_once() -> None:
    run = make_run(due=DUE)
    append_history([said(STARTED, run, at=DUE), said(STARTED, run, at=DUE + 9 * S, reason=REATTACHED)])
    assert of(DUE).started == 1


def test_a_run_that_was_sent_again_after_a_change_was_due_once() -> None:
    run = make_run(due=DUE)
    append_history([said(QUEUED, run, at=DUE + S)])
    Execution.objects.filter(id=run).update(generation=2)
    append_history([said(QUEUED, run, at=DUE + 2 * S, generation=2)])
    append_history([said(QUEUED, run, at=DUE + 3 * S, reason="pool_full")])
    append_history([said(QUEUED, run, 2, at=DUE + 4 * S)])
    assert of(DUE).due == 1


def test_lateness_is_of_what_has_a_time_of_its_own() -> None:
    """What catches up was due long ago, and a spread start is not late."""
    caught_up = make_run(due=DUE - timedelta(hours=3), trigger=Trigger.CATCH_UP)
    spread = make_run(stored_spec(jitter_s=300.0), due=DUE)
    for run in (caught_up, spread):
        append_history([said(QUEUED, run, at=DUE + 30 * S), said(STARTED, run, at=DUE + 30 * S)])
    assert of(DUE) == Counts(due=2, started=2)
    assert not Trouble.objects.exists()


def test_a_late_start_is_counted_with_its_job() -> None:
    spec = stored_spec()
    prompt, late = make_run(spec, due=DUE), make_run(spec, due=DUE)
    append_history([said(STARTED, prompt, at=DUE + S / 2), said(STARTED, late, at=DUE + 12 * S)])
    (trouble,) = Trouble.objects.all()
    assert (trouble.what, trouble.count, trouble.worst_s, trouble.latest) == ("late", 1, 12.0, late)


def test_teams_are_counted_apart() -> None:
    append_history([said(STARTED, make_run(due=DUE, owner_id=owner), at=DUE) for owner in (1, 1, 2)])
    assert [of(DUE, teams).started for teams in ([1], [2], [1, 2], [3], [])] == [2, 1, 3, 0, 0]
    assert of(DUE).started == 3


def test_events_of_no_row_count_nothing() -> None:
    append_history([said(STARTED, uuid4(), at=DUE)])
    assert not Minute.objects.exists()


def test_a_batch_is_one_statement_however_many_events_it_has() -> None:
    for number in (1, 40):
        events = [event for run in make_runs(number, due=DUE) for event in life(run)]
        with CaptureQueriesContext(
            connection,
        ) as queries:
            append_history(events)
        assert len(queries) == 1


@pytest.mark.django_db(transaction=True)
def test_several_auditors_count_each_event_once_and_wait_for_nobody() -> None:
    runs = [run for owner in (1, 2, 3) for run in make_runs(40, due=DUE, owner_id=owner)]
    events = [event for run in runs for event in life(run)]
    barrier = threading.Barrier(4)

    def audit(seed: int) -> None:
        mixed = random.Random(seed)
        barrier.wait(10)
        for _ in range(6):
            append_history(mixed.sample(events, len(events) // 2))
        append_history(mixed.sample(events, len(events)))

    in_threads(*(lambda seed=seed: audit(seed) for seed in range(4)))
    assert of(DUE) == Counts(due=120, started=120, completed=120, lateness={bucket_of(0.25): 120})


def test_rows_of_several_connections_are_put_together_and_old_ones_go() -> None:
    """The sums stay, and a second round changes nothing."""
    rows = [
        Minute(minute=minute, owner_id=1, what="started", bucket=0, writer=writer, count=5)
        for minute in (DUE, DUE + 2 * MINUTE)
        for writer in (0, 7, 8)
    ]
    rows.append(
        Minute(minute=DUE - timedelta(days=9), owner_id=1, what="started", bucket=0, writer=7, count=1)
    )
    Minute.objects.bulk_create(rows)
    for _ in range(2):
        tidy(DUE + 11 * MINUTE, retention=timedelta(days=30))
        assert sorted(Minute.objects.filter(minute=DUE).values_list("writer", "count")) == [(0, 15)]
        assert Minute.objects.filter(minute=DUE + 2 * MINUTE).count() == 3
        assert Minute.objects.aggregate(Sum("count"))["count__sum"] == 30


def test_minutes_are_read_by_their_key() -> None:
    """An hour of a table of a week: the index, and nothing but the hour."""
    rows = [
        Minute(minute=DUE + n * MINUTE, owner_id=owner, what=what, bucket=0, writer=0, count=1)
        for n in range(1000)
        for owner in (1, 2)
        for what in ("due", "started", "completed")
    ]
    Minute.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE executions_minute")
        for teams in (None, [1]):
            span = {"since": DUE + 900 * MINUTE, "until": DUE + 960 * MINUTE, "teams": teams}
            cursor.execute("EXPLAIN (COSTS OFF) " + HISTORY["minutes"], span)
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "executions_minute_pkey" in plan and "Seq Scan" not in plan, plan


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({}, 0.5, None),
        ({0: 10}, 0.5, 0.005),
        ({0: 99, bucket_of(4.0): 1}, 0.99, 0.01),
        ({0: 98, bucket_of(4.0): 2}, 0.99, 4.0),
        ({len(BOUNDS_S): 3}, 0.99, BOUNDS_S[-1]),
    ],
)
def test_percentiles_of_buckets(buckets: dict[int, int], share: float, expected: float | None) -> None:
    assert percentile(buckets, share) == expected


def test_the_database_finds_the_buckets_that_python_does() -> None:
    late = [0.0, -3.0, *BOUNDS_S, *(bound + 0.001 for bound in BOUNDS_S)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT width_bucket(late, %s::float8[])"
            " FROM unnest(%s::float8[]) WITH ORDINALITY AS t(late, n) ORDER BY n",
            [list(BOUNDS_S), late],
        )
        assert [row[0] for row in cursor.fetchall()] == [bucket_of(item) for item in late]


def test_minutes_together_are_their_sum() -> None:
    total = together(
        [Counts(due=1, failed=2, lateness={3: 1}), Counts(due=2, undone=1, lateness={3: 2, 4: 1})]
    )
    assert total == Counts(due=3, failed=2, undone=1, lateness={3: 3, 4: 1})
    assert total.abnormal == 1
