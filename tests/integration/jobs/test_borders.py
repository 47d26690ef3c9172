"""A schedule counts from the edit that gave it; what the one before left open has a row."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executions.models import Execution
from executions.store import Store
from executions.transitions import record
from jobs import services
from jobs.changes import settle
from jobs.models import Job, Missed
from jobs.outages import MissedRun, settle_missed
from jobs.schedules import fires_between
from jobs.stored_schedules import schedule_of
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job, run_to_end, waiting_run
from tests.integration.jobs.test_changes import change, root
from tests.integration.making import COMPLETED, STARTED, entry_for, said

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EVERY_SECOND = {"cron": "* * * * * *"}
NEW = [EVERY_SECOND, {"every": "1s"}, {"every": "7s"}, {"cron": "0 3 * * *"}]
NUMBERS = count()


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow().replace(microsecond=0)


def begin(job: Job) -> Execution:
    run = waiting_run(job)
    record([said(STARTED, run.id, at=run.scheduled_for)], run.scheduled_for)
    return run


def end(run: Execution, at: datetime) -> None:
    record([said(COMPLETED, run.id, at=at, started_at=run.scheduled_for, exit_code=0)], at)


def rescheduled(job: Job) -> list[tuple[datetime, int]]:
    rows = Execution.objects.filter(job_id=job.id, reason="rescheduled", missed__gt=0).order_by("id")
    return list(rows.values_list("scheduled_for", "missed"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    overlap=st.sampled_from(["forbid", "queue", "allow", "replace"]),
    length=st.integers(1, 50),
    edited=st.integers(0, 60),
    schedule=st.sampled_from(NEW),
)
def test_each_old_fire_before_an_edit_has_run_or_a_row_and_no_new_one_lies_before_it(
    now: datetime, overlap: str, length: int, edited: int, schedule: Any
) -> None:
    job = new_job({"every": "10s"}, now, name=f"job {next(NUMBERS)}", overlap=overlap)
    old = schedule_of(job)
    run = begin(job)
    finish, edit = run.scheduled_for + length * SECOND, run.scheduled_for + edited * SECOND + SECOND / 2
    if finish < edit:
        end(run, finish)
    change(job, edit, schedule=schedule)
    if finish > edit:
        end(run, finish)
    run_to_end(job, max(edit, finish), 3)

    fires = set(fires_between(old, now, edit, 100))
    before = Execution.objects.filter(job_id=job.id, scheduled_for__lte=edit)
    assert {row.scheduled_for for row in before} <= fires
    assert sum(row.missed or 1 for row in before) == len(fires)


def test_a_queue_goes_on_from_the_edit(now: datetime) -> None:
    job = new_job({"every": "1m"}, now, overlap="queue")
    run = begin(job)
    edit = run.scheduled_for + 9 * SECOND
    change(job, edit, schedule=EVERY_SECOND)
    end(run, edit + 7 * SECOND)
    assert waiting_run(job).scheduled_for == edit + SECOND


def test_a_queue_whose_next_run_was_cancelled_by_an_edit_leaves_out_nothing(now: datetime) -> None:
    job = new_job({"every": "1h"}, now, overlap="queue")
    later = waiting_run(job).scheduled_for
    change(job, now + SECOND, schedule={"every": "1s"})
    run = begin(job)
    assert run.scheduled_for < later
    end(run, run.scheduled_for + 5 * SECOND)
    assert waiting_run(job).scheduled_for == run.scheduled_for + SECOND


def test_fires_that_fell_into_a_run_count_from_the_edit(now: datetime) -> None:
    job = new_job({"every": "1m"}, now)
    run = begin(job)
    edit = run.scheduled_for + 9 * SECOND
    change(job, edit, schedule=EVERY_SECOND)
    end(run, edit + 7 * SECOND)
    row = Execution.objects.get(job_id=job.id, reason="skipped_overlap")
    assert (row.scheduled_for, row.missed) == (edit + SECOND, 7)


@pytest.mark.parametrize("schedule", [{"cron": "*/10 * * * * *"}, {"cron": "0 3 * * *"}])
def test_missed_fires_that_were_to_be_caught_up_with_are_one_row(now: datetime, schedule: Any) -> None:
    job = new_job({"every": "1m"}, now - HOUR - 30 * SECOND, misfire="all")
    run = waiting_run(job)
    settle_missed([MissedRun(entry_for(run.id, run.scheduled_for), job.id, run.scheduled_for)], now)
    caught_up = Execution.objects.get(job_id=job.id, trigger="catchup")
    change(job, now + SECOND, schedule=schedule)
    assert caught_up.catch_up_until is not None
    missed = (caught_up.catch_up_until - caught_up.scheduled_for) // MINUTE
    assert missed > 50
    assert rescheduled(job) == [(caught_up.scheduled_for + MINUTE, missed)]
    record([said(STARTED, caught_up.id, at=now)], now)
    end(caught_up, now + 2 * SECOND)
    assert waiting_run(job).scheduled_for == now - 30 * SECOND  # just late


def test_a_job_edited_while_it_is_paused_is_resumed_from_the_edit(now: datetime) -> None:
    job = new_job({"every": "1h"}, now - HOUR - MINUTE)
    run = begin(job)
    end(run, run.scheduled_for + SECOND)
    job = services.pause_job(Job.objects.get(id=job.id), root(), now)
    change(job, now + MINUTE, schedule={"cron": "* * * * *"})
    services.resume_job(Job.objects.get(id=job.id), root(), now + 4 * MINUTE, Missed.RUN_ALL)
    later = Execution.objects.filter(job_id=job.id, id__gt=run.id).exclude(state="Cancelled")
    planned = sorted(row.scheduled_for for row in later)
    assert now + MINUTE < planned[0] <= now + 2 * MINUTE


def test_a_run_that_ends_before_an_edit_is_settled_goes_on_by_the_old_schedule(now: datetime) -> None:
    job = new_job({"every": "1m"}, now, overlap="queue")
    run = begin(job)
    Job.objects.filter(id=job.id).update(schedule=EVERY_SECOND)
    end(run, run.scheduled_for + 9 * SECOND)
    assert waiting_run(job).scheduled_for == run.scheduled_for + MINUTE
    edit = run.scheduled_for + 10 * SECOND
    settle(job.id, edit)
    assert waiting_run(job).scheduled_for == edit + SECOND


def test_jitter_alone_draws_no_border(now: datetime) -> None:
    job = new_job({"every": "1m"}, now)
    begin(job)
    change(job, now + 10 * MINUTE, jitter="5s")
    assert Job.objects.get(id=job.id).schedule_since is None
    assert rescheduled(job) == []
