"""Moving one run moves this one only: the job goes on at its planned times."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from access.policy import System
from executions.holding import is_held
from executions.models import Execution
from executions.rescheduling import reschedule_execution
from executions.services import cancel_execution
from executions.store import Store
from executions.transitions import record
from jobs import services
from jobs.listing import next_runs
from jobs.models import Job, Missed
from jobs.occurrences import missing_occurrences
from jobs.previews import preview_job
from jobs.schedules.kinds import format_instant
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job
from tests.integration.jobs.test_changes import change, root, waiting
from tests.integration.making import CANCELLED, COMPLETED, QUEUED, STARTED, said

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
OVERLAPS = ("forbid", "allow", "queue", "replace")


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def following(job: Job) -> Execution:
    """The next occurrence of its schedule."""
    return Execution.objects.get(job_id=job.id, trigger="schedule", finished_at=None)


def moved(job: Job) -> Execution:
    return Execution.objects.get(job_id=job.id, trigger="moved")


def pause(job: Job, now: datetime) -> None:
    services.pause_job(Job.objects.get(id=job.id), root(), now)


def resume(job: Job, now: datetime, missed: Missed = Missed.SKIP) -> None:
    services.resume_job(Job.objects.get(id=job.id), root(), now, missed)


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("away", [timedelta(0), 3 * DAY])
def test_the_next_occurrence_is_made_when_one_is_moved(now: datetime, overlap: str, away: timedelta) -> None:
    job = new_job({"every": "1h"}, now, overlap=overlap)
    first = following(job)
    reschedule_execution(first.id, now + away, System("mia"), now)
    run = moved(job)
    assert (run.id, run.scheduled_for, run.check_at) == (first.id, first.scheduled_for, now + away)
    after = following(job)
    assert (after.scheduled_for, after.check_at) == (first.scheduled_for + HOUR,) * 2
    to = format_instant(now + away)
    told = f"The run planned for {format_instant(first.scheduled_for)} was moved to {to}."
    assert told in preview_job(job, now, 5).warnings
    assert told not in preview_job(job, first.scheduled_for, 5).warnings
    assert next_runs([job]) == {job.id: min(now + away, after.scheduled_for)}
    assert missing_occurrences([job.shard], now) == []
    record([said(STARTED, first.id, at=now), said(COMPLETED, first.id, at=now)], now)
    assert following(job).id == after.id


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_a_run_that_is_sent_already_is_moved_and_the_next_comes_at_its_time(
    now: datetime, overlap: str
) -> None:
    job = new_job({"every": "1h"}, now - HOUR, overlap=overlap)
    first = following(job)
    record([said(QUEUED, first.id, at=now)], now)
    reschedule_execution(first.id, now + DAY, System("mia"), now)
    after = following(job)
    assert (after.scheduled_for, after.check_at) == (first.scheduled_for + HOUR,) * 2


@pytest.mark.parametrize("choice", list(Missed))
def test_a_pause_and_an_edit_leave_a_moved_run_at_its_time(now: datetime, choice: Missed) -> None:
    job = new_job({"every": "1h"}, now)
    reschedule_execution(following(job).id, now + 3 * DAY, System("mia"), now)
    change(job, now, command="false")
    change(job, now, schedule={"every": "2h"})
    pause(job, now)
    assert moved(job).state == "Paused"
    resume(job, now + 5 * HOUR, choice)
    run = moved(job)
    assert (run.state, run.check_at, run.spec.body["command"]) == ("Waiting", now + 3 * DAY, "false")
    assert following(job).scheduled_for > now + 5 * HOUR


def test_a_new_schedule_does_not_plan_again_for_what_was_moved(now: datetime) -> None:
    job = new_job({"cron": "0 0 1 1 *"}, now)
    first = following(job)
    reschedule_execution(first.id, now + DAY, System("mia"), now)
    change(job, now, schedule={"cron": "0 0 1 */12 *"})
    assert following(job).scheduled_for > first.scheduled_for


def test_a_run_asked_for_by_hand_that_was_moved_keeps_its_time_through_a_pause(now: datetime) -> None:
    job = new_job({"after": "2h"}, now)
    run = waiting(job)
    Execution.objects.filter(id=run.id).update(trigger="manual")
    reschedule_execution(run.id, now + DAY, System("mia"), now)
    pause(job, now)
    resume(job, now)
    again = waiting(job)
    assert (again.trigger, again.check_at) == ("manual", now + DAY)


def test_a_run_that_ended_before_its_planned_time_leaves_the_chain_to_the_fire_after(now: datetime) -> None:
    job = new_job({"every": "1h"}, now)
    first = following(job)
    pause(job, now)
    record([said(CANCELLED, first.id, at=now)], now)
    resume(job, now + SECOND)
    assert following(job).scheduled_for == first.scheduled_for + HOUR


def test_a_run_moved_to_now_that_ends_during_a_pause_leaves_its_job_a_next_run(now: datetime) -> None:
    job = new_job({"every": "1h"}, now)
    first = following(job)
    reschedule_execution(first.id, now, System("mia"), now)
    record([said(STARTED, first.id, at=now)], now)
    pause(job, now)
    record([said(COMPLETED, first.id, at=now + SECOND)], now + SECOND)
    resume(job, now + 2 * SECOND)
    assert following(job).state == "Waiting"


@pytest.mark.parametrize("how", ["moved", "cancelled"])
def test_what_takes_the_place_of_a_run_that_waited_for_another_waits_for_it(now: datetime, how: str) -> None:
    job = new_job({"every": "1h"}, now - HOUR, overlap="replace")
    first = following(job)
    record([said(STARTED, first.id, at=now)], now)
    parked = Execution.objects.get(job_id=job.id, state="Waiting")
    if how == "moved":
        reschedule_execution(parked.id, now + DAY, System("mia"), now)
    else:
        cancel_execution(parked.id, System("mia"), now)
    after = Execution.objects.get(job_id=job.id, state="Waiting", trigger="schedule")
    assert after.check_at is not None
    assert is_held(after.check_at)
    record([said(COMPLETED, first.id, at=now)], now)
    assert following(job).check_at == after.scheduled_for


def test_a_missed_fire_that_is_moved_does_not_keep_the_others_waiting(now: datetime) -> None:
    job = new_job({"every": "1h"}, now - DAY)
    pause(job, now - DAY)
    resume(job, now, Missed.RUN_ALL)
    first = Execution.objects.get(job_id=job.id, trigger="catchup")
    reschedule_execution(first.id, now + DAY, System("mia"), now)
    after = Execution.objects.get(job_id=job.id, trigger="catchup")
    assert after.scheduled_for == first.scheduled_for + HOUR
    assert moved(job).check_at == now + DAY


def test_whoever_mends_a_chain_goes_on_from_now_past_what_was_moved(now: datetime) -> None:
    job = new_job({"every": "1h"}, now)
    far = following(job)
    reschedule_execution(far.id, now, System("mia"), now)
    after = following(job)
    Execution.objects.filter(id=after.id).delete()
    (mended,) = missing_occurrences([job.shard], now)
    assert mended.scheduled_for == after.scheduled_for
    Execution.objects.filter(id=far.id).update(scheduled_for=now + 300 * DAY)  # of another schedule
    (mended,) = missing_occurrences([job.shard], now)
    assert mended.scheduled_for == far.scheduled_for
