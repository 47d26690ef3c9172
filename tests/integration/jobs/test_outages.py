"""After an outage: the misfire policy in the database, in bulk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import sleep
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from executions.claims import Claimed, Claims
from executions.entries import Entry
from executions.holding import held
from executions.models import Execution, ExecutionEvent
from executions.store import Store
from executions.transitions import insert, record
from jobs.models import Job
from jobs.occurrences import occurrence
from jobs.outages import MissedRun, settle_missed
from scheduler_project.kernel.clock import monotonic
from tests.integration.jobs.chain import new_job
from tests.integration.making import CANCELLED, QUEUED, said

pytestmark = pytest.mark.django_db
CREATED = datetime(2030, 3, 1, 11, 59, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIRST = CREATED.replace(minute=0, second=0, hour=12)
BACK = FIRST + 60 * MINUTE + timedelta(seconds=20)  # 12:00 to 12:59 were missed, 13:00 is just late


def missed_of(*jobs: Job) -> list[MissedRun]:
    rows = Execution.objects.filter(job_id__in=[job.id for job in jobs], state="Waiting").order_by("id")
    return [MissedRun(entry_of(row), row.job_id, row.scheduled_for) for row in rows]


def entry_of(row: Execution) -> Entry:
    assert row.check_at is not None
    return Entry(execution_id=row.id, spec_id=row.spec_id, attempt=row.attempt, due=row.check_at)


def brief(job: Job) -> list[tuple[Any, ...]]:
    rows = Execution.objects.filter(job_id=job.id).order_by("id")
    return [
        ((row.scheduled_for - FIRST) // MINUTE, row.trigger, row.state, row.reason, row.missed)
        for row in rows
    ]


LATEST = [
    (0, "schedule", "Cancelled", "skipped_misfire", 59),
    (59, "catchup", "Waiting", "", 0),
    (60, "schedule", "Waiting", "", 0),
]


@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        ("latest", LATEST),
        ("none", [(0, "schedule", "Cancelled", "skipped_misfire", 60), (60, "schedule", "Waiting", "", 0)]),
        ("all", [(0, "catchup", "Waiting", "", 0), (60, "schedule", "Waiting", "", 0)]),
        (
            {"policy": "all", "maxAge": "30m"},
            [
                (0, "schedule", "Cancelled", "skipped_misfire", 31),
                (31, "catchup", "Waiting", "", 0),
                (60, "schedule", "Waiting", "", 0),
            ],
        ),
        (
            {"policy": "all", "maxCount": 3},
            [
                (0, "schedule", "Cancelled", "skipped_misfire", 57),
                (57, "catchup", "Waiting", "", 0),
                (60, "schedule", "Waiting", "", 0),
            ],
        ),
    ],
    ids=["latest", "none", "all", "maxAge", "maxCount"],
)
def test_an_hour_of_outage(misfire: Any, expected: list[tuple[Any, ...]]) -> None:
    job = new_job("* * * * *", CREATED, misfire=misfire)
    settle_missed(missed_of(job), BACK)
    assert brief(job) == expected
    for row in Execution.objects.filter(job_id=job.id, trigger="catchup"):
        assert row.check_at == held(row.scheduled_for)
        assert row.catch_up_until == FIRST + 59 * MINUTE


def test_what_was_skipped_says_so_in_its_history_and_settling_again_changes_nothing() -> None:
    job = new_job("* * * * *", CREATED)
    missed = missed_of(job)
    for _ in range(2):
        settle_missed(missed, BACK)
        assert brief(job) == LATEST
    skipped = Execution.objects.get(job_id=job.id, state="Cancelled")
    assert skipped.message == "59 planned from 2030-03-01 12:00:00 to 2030-03-01 12:58:00 UTC did not run"
    (event,) = ExecutionEvent.objects.filter(execution_id=skipped.id)
    assert (event.type, event.reason) == ("JOB_SKIPPED", "skipped_misfire")


@pytest.mark.parametrize(("misfire", "back"), [("all", BACK), ("latest", FIRST + timedelta(seconds=65))])
def test_what_another_beat_has_let_catch_up_stays_as_it_is(misfire: str, back: datetime) -> None:
    """Both read the run as missed. When the second settles it, the first has gone on with the chain."""
    job = new_job("* * * * *", CREATED, misfire=misfire, overlap="allow")
    missed = missed_of(job)
    settle_missed(missed, back)
    before = whole(job)
    assert settle_missed(missed, back) == []
    assert whole(job) == before
    assert before[0][:2] == ("catchup", "Waiting")


@pytest.mark.django_db(transaction=True)
def test_of_two_beats_that_settle_the_same_run_at_once_one_does() -> None:
    """The second looked at the clock long before: it would settle less than the first has gone on from."""
    job = new_job("* * * * *", CREATED, misfire="all", overlap="allow")
    missed = missed_of(job)
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            settle_missed(missed, BACK)
            before = whole(job)
            second = other.submit(in_a_connection_of_its_own, settle_missed, missed, BACK - 30 * MINUTE)
            wait_until_blocked(second)
        assert second.result(10) == []
    assert whole(job) == before


def whole(job: Job) -> list[tuple[Any, ...]]:
    """What is to become of a job's fires, by its rows."""
    rows = Execution.objects.filter(job_id=job.id).order_by("id")
    return list(rows.values_list("trigger", "state", "scheduled_for", "catch_up_until", "check_at", "missed"))


def in_a_connection_of_its_own(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    finally:
        connection.close()


def wait_until_blocked(waits: Future[Any]) -> None:
    """Until its transaction waits for a lock of this one."""
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    deadline = monotonic() + 10
    with connection.cursor() as cursor:
        while not waits.done():
            cursor.execute(waiting)
            if cursor.fetchone():
                return
            assert monotonic() < deadline, "the second does not wait for the first"
            sleep(0.01)


def test_what_was_skipped_does_not_start_from_the_queue(
    store: Store, django_capture_on_commit_callbacks: Any
) -> None:
    """It was sent, and for longer than the enqueue time-out nobody took it and nobody recorded that."""
    job = new_job("* * * * *", CREATED)
    (missed,) = missed_of(job)
    worker = Claims(store, "w", MINUTE)
    assert worker.claim(missed.id, 1) is Claimed.WON
    worker.give_up(missed.id, 1, begun=False)
    with django_capture_on_commit_callbacks(execute=True):
        settle_missed([missed], BACK)
    assert brief(job) == LATEST
    assert worker.claim(missed.id, 1) is Claimed.STOPPED


def test_in_a_queue_the_missed_fires_come_first() -> None:
    job = new_job("* * * * *", CREATED, misfire="all", overlap="queue")
    settle_missed(missed_of(job), BACK)
    assert brief(job) == [(0, "catchup", "Waiting", "", 0)]


def test_of_runs_that_overlap_the_last_one_goes_on_with_the_chain() -> None:
    job = new_job("* * * * *", CREATED, overlap="allow")
    insert([occurrence(job, FIRST + n * MINUTE) for n in (1, 2)])
    settle_missed(missed_of(job), BACK)
    assert brief(job) == [
        (0, "schedule", "Cancelled", "skipped_misfire", 1),
        (1, "schedule", "Cancelled", "skipped_misfire", 1),
        (2, "schedule", "Cancelled", "skipped_misfire", 57),
        *LATEST[1:],
    ]


@pytest.mark.parametrize("kind", [QUEUED, CANCELLED])
def test_what_somebody_has_sent_or_ended_meanwhile_stays_as_it_is(kind: Any) -> None:
    job = new_job("* * * * *", CREATED)
    missed = missed_of(job)
    record([said(kind, missed[0].id, at=FIRST)], FIRST, follow=False)
    before = brief(job)
    assert settle_missed(missed, BACK) == []
    assert brief(job) == before


def test_a_job_that_runs_once_runs_late() -> None:
    job = new_job({"at": "2030-03-01T12:00:00Z"}, CREATED)
    settle_missed(missed_of(job), BACK)
    assert brief(job) == [(0, "catchup", "Waiting", "", 0)]


def test_a_run_whose_job_is_gone_or_unreadable_is_due_now() -> None:
    job = new_job("* * * * *", CREATED)
    Job.objects.filter(id=job.id).update(schedule={"cron": "* * * * *", "timezone": "Mars/Olympus"})
    Job.objects.filter(id=job.id).update(settled_revision=F("revision"))  # as if its zone had gone since
    (entry,) = settle_missed(missed_of(job), BACK)
    assert entry.due == BACK
    assert Execution.objects.get(job_id=job.id).check_at == BACK


def test_jitter_counts_from_when_it_was_due() -> None:
    job = new_job("0 * * * *", CREATED, jitter="50m", misfire="none")
    (run,) = missed_of(job)
    spread = run.entry.due - FIRST
    assert timedelta(0) < spread < 50 * MINUTE
    settle_missed([run], FIRST + spread + 60 * MINUTE + timedelta(seconds=10))  # 13:00 is just late
    assert [(row[0], row[2]) for row in brief(job)] == [(0, "Cancelled"), (60, "Waiting")]


def test_ten_thousand_runs_of_an_hour_ago_cost_few_statements() -> None:
    """A page of the sweep is 1,000: this is one, and the number of statements does not grow with it."""
    first = new_job("* * * * *", CREATED)
    values = {field.attname: getattr(first, field.attname) for field in Job._meta.concrete_fields}
    jobs = Job.objects.bulk_create(
        [Job(**{**values, "id": uuid4(), "name": f"job {n}"}) for n in range(999)], batch_size=999
    )
    insert([occurrence(job, FIRST) for job in jobs])
    missed = missed_of(first, *jobs)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        settle_missed(missed, BACK)
    assert len(queries) <= 12
    assert Execution.objects.filter(reason="skipped_misfire", missed=59).count() == 1000
    assert Execution.objects.filter(trigger="catchup").count() == 1000
    assert Execution.objects.filter(trigger="schedule", state="Waiting").count() == 1000
