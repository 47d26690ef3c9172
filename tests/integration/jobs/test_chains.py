"""A job with ``forbid`` or ``queue`` has one chain, however many of its runs an earlier rule has begun."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import uuid4

import pytest
from django.db import connection, transaction

from executions.events import Event
from executions.models import Execution
from executions.states import State
from executions.store import Store
from executions.transitions import insert, record
from jobs.models import Job
from jobs.occurrences import occurrence
from jobs.queries import JOBS
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job, waiting_run
from tests.integration.making import COMPLETED, STARTED, new_run, said, stored_spec

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def two_under_way(now: datetime, overlap: str) -> tuple[Job, list[Execution]]:
    """A job whose rule is ``overlap`` since two of its runs are under way beside each other."""
    job = new_job({"every": "1h"}, now - 2 * HOUR, overlap="allow")
    first = waiting_run(job)
    insert([occurrence(job, first.scheduled_for + HOUR)])
    runs = list(Execution.objects.filter(job_id=job.id).order_by("scheduled_for"))
    Job.objects.filter(id=job.id).update(overlap=overlap)
    record([said(STARTED, run.id, at=run.scheduled_for) for run in runs], now)
    assert Execution.objects.filter(job_id=job.id).count() == 2
    return Job.objects.get(id=job.id), runs


def end_of(run: Execution, at: datetime) -> Event:
    return said(COMPLETED, run.id, at=at, started_at=run.scheduled_for, exit_code=0)


def waiting(job: Job) -> list[datetime]:
    return list(
        Execution.objects.filter(job_id=job.id, state="Waiting").values_list("scheduled_for", flat=True)
    )


@pytest.mark.parametrize("overlap", ["forbid", "queue"])
def test_the_last_of_two_runs_to_end_makes_the_next(now: datetime, overlap: str) -> None:
    job, (first, second) = two_under_way(now, overlap)
    record([end_of(second, now + SECOND)], now)
    assert waiting(job) == []
    record([end_of(first, now + 2 * SECOND)], now)
    assert len(waiting(job)) == 1


@pytest.mark.parametrize("overlap", ["forbid", "queue"])
def test_two_runs_that_end_in_one_batch_have_one_next(now: datetime, overlap: str) -> None:
    job, (first, second) = two_under_way(now, overlap)
    record([end_of(first, now + 2 * SECOND), end_of(second, now + SECOND)], now)
    assert waiting(job) == [second.scheduled_for + HOUR]


def test_two_runs_whose_ends_are_recorded_at_once_have_one_next(now: datetime) -> None:
    job, (first, second) = two_under_way(now, "forbid")

    def end_second() -> None:
        record([end_of(second, now + SECOND)], now)
        connection.close()

    other = Thread(target=end_second)
    with transaction.atomic():
        record([end_of(first, now + SECOND)], now)
        other.start()
        other.join(timeout=1)  # it waits for this transaction
        assert other.is_alive()
    other.join()
    assert len(waiting(job)) == 1


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("query", ["chains_alive", "latest_of_chains"])
def test_what_is_asked_of_a_chain_is_found_by_index(store: Store, query: str, analysed: bool) -> None:
    spec, at = stored_spec(), datetime(2030, 3, 1, 12, tzinfo=UTC)
    insert([new_run(spec, due=at, state=State.CANCELLED, check_at=None, finished_at=at) for _ in range(2000)])
    insert([new_run(spec, due=at) for _ in range(2000)])
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute("ANALYZE executions_execution")
        cursor.execute("EXPLAIN " + JOBS[query], [[uuid4()]])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on executions_execution_default" not in plan, plan  # where the rows are
