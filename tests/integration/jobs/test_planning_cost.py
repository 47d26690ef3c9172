"""At a full hour thousands of jobs share one expression: it is evaluated once for all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from executions.planning import EndedRun, Progress, plan_next
from executions.states import State, Trigger
from jobs.models import Job
from jobs.occurrences import schedule_of
from jobs.schedules import Cron
from jobs.schedules.evaluation import evaluator_of
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db
NIGHTLY = {"cron": "0 2 * * *", "timezone": "Europe/Vienna"}
DUE = datetime(2027, 6, 1, 0, 0, tzinfo=UTC)
JOBS = 10_000


def copies_of(job: Job, number: int) -> list[Job]:
    values = {field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields}
    copies = [Job(**{**values, "id": uuid4(), "name": f"job {i}", "shard": i % 64}) for i in range(number)]
    return Job.objects.bulk_create(copies, batch_size=2000)


def test_the_next_runs_of_ten_thousand_jobs_cost_one_evaluation(store: object) -> None:
    first = new_job(NIGHTLY, DUE - timedelta(days=1))
    schedule = schedule_of(first)
    assert isinstance(schedule, Cron)
    ended = EndedRun(
        id=first.id,
        job_id=first.id,
        trigger=Trigger.SCHEDULE,
        scheduled_for=DUE,
        state=State.COMPLETED_NORMALLY,
        started_at=DUE,
        finished_at=DUE,
    )
    runs = [
        replace(
            ended,
            job_id=job.id,
            started_at=DUE + timedelta(milliseconds=number),
            finished_at=DUE + timedelta(seconds=1, milliseconds=number),
        )
        for number, job in enumerate(copies_of(first, JOBS))
    ]
    before = evaluator_of(schedule.rule).evaluations

    new = plan_next(Progress(ended=runs), DUE + timedelta(minutes=1))

    assert len(new) == JOBS
    assert {item.scheduled_for for item in new} == {DUE + timedelta(days=1)}
    assert len({item.id for item in new}) == JOBS
    assert evaluator_of(schedule.rule).evaluations == before + 1
