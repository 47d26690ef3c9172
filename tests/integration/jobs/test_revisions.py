"""A job's revision: raised by the database whenever the row changes, by whatever route."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection, transaction

from jobs.definitions import read_definition
from jobs.models import Job, Task
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job() -> Job:
    user = User.objects.create(username="root", is_superuser=True)
    Group.objects.create(name="data-engineering")
    return create_job(read_definition(BODY), user, utcnow()).job


def revisions(job: Job) -> tuple[int, int]:
    found: tuple[int, int] = Job.objects.values_list("revision", "settled_revision").get(id=job.id)
    return found


def update(job: Job, **fields: Any) -> None:
    Job.objects.filter(id=job.id).update(**fields)


def test_a_new_job_is_settled(job: Job) -> None:
    assert revisions(job) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", "python other.py"),
        ("schedule", {"every": "5m"}),
        ("retries", 7),
        ("jitter", timedelta(seconds=3)),
        ("paused_at", utcnow()),
    ],
)
def test_each_change_raises_it(job: Job, field: str, value: Any) -> None:
    update(job, **{field: value})
    assert revisions(job) == (2, 1)
    update(job, **{field: value})  # the same again is no change
    assert revisions(job) == (2, 1)


def test_settling_does_not_raise_it(job: Job) -> None:
    update(job, command="python other.py")
    update(job, settled_revision=2, problem="none")
    assert revisions(job) == (2, 2)


def test_a_stale_copy_that_is_saved_raises_it(job: Job) -> None:
    stale = Job.objects.get(id=job.id)
    update(job, command="python other.py")
    update(job, settled_revision=2)
    stale.save()
    assert revisions(job) == (3, 1)


def test_it_can_be_raised_by_hand_and_never_lowered(job: Job) -> None:
    update(job, revision=9)
    update(job, revision=1)
    assert revisions(job) == (9, 1)


def test_a_task_that_changes_raises_those_of_its_jobs(job: Job) -> None:
    task = Task.objects.create(name="shared", command="true")
    update(job, task=task)
    Task.objects.filter(id=task.id).update(command="false")
    assert revisions(job) == (3, 1)
    Task.objects.filter(id=task.id).update(command="false")
    assert revisions(job) == (3, 1)


def test_a_change_is_told_to_whoever_listens(job: Job) -> None:
    with psycopg.connect(_address()) as listener:
        listener.autocommit = True
        listener.execute("LISTEN jobs_changed")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_job SET command = 'python raw.py'")
        told = [notice.payload for notice in listener.notifies(timeout=5, stop_after=1)]
    assert told == [str(job.shard)]


def _address() -> str:
    settings = connection.settings_dict
    parts = {"host": settings["HOST"], "port": settings["PORT"], "dbname": settings["NAME"]}
    parts |= {"user": settings["USER"], "password": settings["PASSWORD"]}
    return psycopg.conninfo.make_conninfo(**{name: value for name, value in parts.items() if value})


@pytest.mark.parametrize(
    "fields",
    [
        {"overlap": "sometimes"},
        {"misfire": "first"},
        {"misfire_max_count": 0},
        {"misfire_max_age": timedelta(0)},
        {"jitter": timedelta(seconds=-1)},
    ],
)
def test_the_database_refuses_a_policy_that_is_none(job: Job, fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        update(job, **fields)


def test_the_name_of_an_archived_job_is_free(job: Job) -> None:
    update(job, archived_at=utcnow())
    again = create_job(read_definition(BODY), User.objects.get(), utcnow()).job
    assert again.name == job.name
