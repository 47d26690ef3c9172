"""The planner mends broken chains; too few shards are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection

from beat.ownership import Ownership
from beat.planner import Planner
from beat.scheduler import check_shards
from executions.models import Execution
from executions.store import Store
from executions.transitions import record
from jobs import occurrences
from jobs.definitions import read_definition
from jobs.models import Job
from jobs.services import create_job
from scheduler_project.kernel.clock import ManualClock
from scheduler_project.kernel.errors import InvalidValue
from tests.integration.making import CANCELLED, make_run, said

pytestmark = pytest.mark.django_db
CREATED = datetime(2030, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def job_with(schedule: Any, name: str = "nightly") -> Job:
    user, _ = User.objects.get_or_create(username="root", is_superuser=True)
    Group.objects.get_or_create(name="team")
    given = {"name": name, "type": "Script", "command": "true", "schedule": schedule, "owner": "team"}
    return create_job(read_definition(given), user, CREATED).job


def rows(job: Job) -> list[tuple[Any, ...]]:
    found = Execution.objects.filter(job_id=job.id).order_by("id")
    return list(found.values_list("scheduled_for", "state", "reason", "missed"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(CREATED + 10 * MINUTE + timedelta(seconds=1))


@pytest.fixture
def planner(ownership: Ownership, clock: ManualClock) -> Planner:
    return Planner(ownership, clock)


def test_a_chain_that_is_whole_is_left_alone(planner: Planner) -> None:
    job = job_with({"every": "5m"})
    planner.run_once()
    assert rows(job) == [(CREATED + 5 * MINUTE, "Waiting", "", 0)]


def test_a_chain_whose_rows_were_deleted_goes_on_after_now(planner: Planner) -> None:
    job = job_with({"every": "3m"})
    Execution.objects.all().delete()
    planner.run_once()
    expected = [
        (CREATED + 3 * MINUTE, "Cancelled", "skipped_misfire", 2),
        (CREATED + 9 * MINUTE, "Waiting", "", 0),  # the latest of those that were missed
        (CREATED + 12 * MINUTE, "Waiting", "", 0),
    ]
    assert rows(job) == expected
    planner.run_once()
    assert rows(job) == expected


def test_a_chain_that_ended_without_its_next_goes_on_from_its_last(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with({"every": "8m"})
    (run,) = Execution.objects.values_list("id", flat=True)
    with monkeypatch.context() as patch:
        patch.setattr("executions.planning._planners", [])
        record([said(CANCELLED, run, at=CREATED + MINUTE)], CREATED + MINUTE)
    planner.run_once()
    assert rows(job) == [
        (CREATED + 8 * MINUTE, "Cancelled", "", 0),
        (CREATED + 16 * MINUTE, "Waiting", "", 0),
    ]


def test_jobs_that_run_once_or_have_ended_have_no_next(planner: Planner) -> None:
    jobs = [job_with("now", "once"), job_with({"every": "5m", "end": "2030-03-01T12:06:00Z"}, "ended")]
    Execution.objects.all().delete()
    for _ in range(2):
        planner.run_once()
    assert rows(jobs[0]) == []
    assert rows(jobs[1]) == [(CREATED + 5 * MINUTE, "Waiting", "", 0)]  # the latest that was missed


def test_jobs_that_have_ended_do_not_hide_those_behind_them(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "PAGE", 2)
    for number in range(5):
        job_with({"every": "5m", "end": "2030-03-01T12:06:00Z"}, f"ended {number}")
    going = [job_with({"every": "5m"}, f"going {number}") for number in range(3)]
    Execution.objects.all().delete()
    planner.run_once()
    assert all(rows(job)[-1][1] == "Waiting" for job in going)


def test_who_owns_no_shard_plans_nothing(store: Store, clock: ManualClock) -> None:
    job = job_with({"every": "5m"})
    Execution.objects.all().delete()
    Planner(Ownership(store, "new", 16, MINUTE), clock).run_once()
    assert rows(job) == []


def test_fewer_shards_than_runs_lie_in_are_refused(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "close", lambda: None)
    run = make_run(shard=12)
    settings.PUNCTUAL_SHARDS = 13
    check_shards()
    settings.PUNCTUAL_SHARDS = 12
    with pytest.raises(InvalidValue, match=r"PUNCTUAL_SHARDS: 12 is not allowed.*shard 12.*at least 13"):
        check_shards()
    record([said(CANCELLED, run)], CREATED)
    check_shards()
