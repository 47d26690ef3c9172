"""The settler: changes that were made past the services are carried out by the beats."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime

import pytest
from django.db import connection

from beat.ownership import Ownership
from beat.settler import Settler
from executions.models import Execution
from executions.store import Store
from jobs.models import Job
from scheduler_project.kernel.clock import SYSTEM_CLOCK, utcnow
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def settler(ownership: Ownership) -> Iterator[Settler]:
    found = Settler(ownership, SYSTEM_CLOCK)
    yield found
    found.close()


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def commands(*jobs: Job) -> list[str]:
    runs = Execution.objects.filter(job_id__in=[job.id for job in jobs]).select_related("spec")
    return [run.spec.body["command"] for run in runs]


def unsettled_jobs() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jobs_job WHERE revision <> settled_revision")
        return int(cursor.fetchone()[0])


def test_what_changed_before_it_listened_is_settled_when_it_connects(settler: Settler, now: datetime) -> None:
    job = new_job({"after": "2h"}, now)
    Job.objects.update(command="false")
    settler.run_once()
    assert commands(job) == ["false"]


def test_what_changes_while_it_listens_is_settled_as_soon_as_it_is_told(
    settler: Settler, now: datetime
) -> None:
    job = new_job({"after": "2h"}, now)
    settler.run_once()  # it has just looked: it would not look again for two seconds
    Job.objects.update(command="false")
    settler.run_once()
    assert commands(job) == ["false"]


def test_a_job_that_cannot_be_read_does_not_keep_the_others_from_it(settler: Settler, now: datetime) -> None:
    broken, *others = [new_job({"after": "2h"}, now, name=f"job {n}") for n in range(4)]
    Job.objects.update(command="false")
    Job.objects.filter(id=broken.id).update(schedule={"cron": "no"})
    settler.run_once()
    assert commands(*others) == ["false"] * 3
    assert commands(broken) == ["true"]
    assert unsettled_jobs() == 0


def test_settlers_at_once_settle_each_job_and_each_run_once(ownership: Ownership, now: datetime) -> None:
    jobs = [new_job("now", now, name=f"job {n}") for n in range(12)]
    Job.objects.update(schedule={"every": "2h"}, command="false")
    settlers = [Settler(ownership, SYSTEM_CLOCK) for _ in range(4)]

    def work(settler: Settler) -> None:
        try:
            while unsettled_jobs():
                settler.run_once()
        finally:
            settler.close()
            connection.close()

    threads = [threading.Thread(target=work, args=(settler,)) for settler in settlers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waiting = Execution.objects.filter(job_id__in=[job.id for job in jobs], state="Waiting")
    assert unsettled_jobs() == 0
    assert waiting.count() == waiting.values("job_id").distinct().count() == 12
    assert set(commands(*jobs)) == {"false"}


def test_it_listens_again_after_its_connection_was_cut(settler: Settler, now: datetime) -> None:
    from executions.database import DatabaseUnavailable

    job = new_job({"after": "2h"}, now)
    settler.run_once()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        assert cursor.fetchone()[0] == 1
    with pytest.raises(DatabaseUnavailable):
        settler.run_once()
    Job.objects.update(command="false")
    settler.run_once()
    assert commands(job) == ["false"]
