"""At a full hour thousands of jobs share one expression: it is evaluated once for all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from executions.planning import BegunRun, EndedRun, Progress, plan_next
from executions.states import State, Trigger
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import occurrence, past_spent
from jobs.schedules import Cron
from jobs.schedules.evaluation import evaluator_of
from jobs.stored_schedules import schedule_of
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db
NIGHTLY = {"cron": "0 2 * * *", "timezone": "Europe/Vienna"}
DUE = datetime(2027, 6, 1, 0, 0, tzinfo=UTC)
JOBS = 10_000
SECOND = timedelta(seconds=1)


def copies_of(job: Job, number: int) -> list[Job]:
    values = {field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields}
    copies = [Job(**{**values, "id": uuid4(), "name": f"job {i}", "shard": i % 64}) for i in range(number)]
    return Job.objects.bulk_create(copies, batch_size=2000)


def ended(job: Job, late: timedelta) -> EndedRun:
    """A run of ``job`` that began that late and took a second."""
    return EndedRun(
        id=uuid4(),
        job_id=job.id,
        trigger=Trigger.SCHEDULE,
        scheduled_for=DUE,
        state=State.COMPLETED_NORMALLY,
        started_at=DUE + late,
        finished_at=DUE + SECOND + late,
    )


def begun(job: Job, late: timedelta) -> BegunRun:
    return BegunRun(
        id=uuid4(), job_id=job.id, trigger=Trigger.SCHEDULE, scheduled_for=DUE, begun_at=DUE + late
    )


def progress(jobs: list[Job], overlap: str) -> Progress:
    """What the planner follows by this rule: ends of runs, or their beginnings; each at its own instant."""
    late = [timedelta(milliseconds=number) for number in range(len(jobs))]
    if overlap == "allow":
        return Progress(begun=list(map(begun, jobs, late)))
    return Progress(ended=list(map(ended, jobs, late)))


@pytest.mark.parametrize("overlap", ["forbid", "allow", "queue"])
def test_the_next_runs_of_ten_thousand_jobs_cost_one_evaluation(store: object, overlap: str) -> None:
    first = new_job(NIGHTLY, DUE - timedelta(days=1), overlap=overlap)
    schedule = schedule_of(first)
    assert isinstance(schedule, Cron)
    passed = progress(copies_of(first, JOBS), overlap)
    before = evaluator_of(schedule.rule).evaluations

    new = plan_next(passed, DUE + timedelta(minutes=1))

    assert len(new) == JOBS
    assert {item.scheduled_for for item in new} == {DUE + timedelta(days=1)}
    assert len({item.id for item in new}) == JOBS
    assert evaluator_of(schedule.rule).evaluations == before + 1


def test_fires_that_others_have_planned_are_asked_for_once_a_job(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    """Each run that begins late brings all fires since its own; of hundreds in a batch most are spent."""
    job = new_job({"every": "5s"}, DUE - SECOND, overlap="allow")
    fires = [DUE + number * 5 * SECOND for number in range(40)]
    rows = [occurrence(job, fire) for fire in fires]
    insert(rows)
    with django_assert_max_num_queries(4):
        assert past_spent({job.id: job}, rows * 10, fires[-1] + SECOND) == []
