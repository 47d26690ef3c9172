"""Held runs get leave: those that catch up one by one, a backfill as many as it says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from executions.holding import held, is_held
from executions.models import Execution
from executions.states import Trigger
from executions.transitions import insert, record
from jobs.catchups import AGAIN, GIVE_UP, SOON, count_under_way, start_catch_ups
from jobs.models import Job
from jobs.occurrences import new_execution
from jobs.outages import settle_missed
from jobs.parking import relieve_parked
from tests.integration.jobs.chain import new_job
from tests.integration.jobs.test_outages import BACK, CREATED, FIRST, MINUTE, missed_of
from tests.integration.making import CANCELLED, COMPLETED, FAILED, QUEUED, STARTED, said

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
S = timedelta(seconds=1)
SHARDS = list(range(16))


def after_outage(**fields: Any) -> Job:
    """A job whose runs of 12:00 to 12:59 were missed; the outage is over at 13:00:20."""
    job = new_job("* * * * *", CREATED, **{"misfire": "all", **fields})
    settle_missed(missed_of(job), BACK)
    return job


def run_regular(job: Job, at: datetime) -> None:
    """The run of 13:00, which is just late, begins and ends."""
    run = Execution.objects.get(job_id=job.id, scheduled_for=FIRST + 60 * MINUTE)
    to_end(run, at)


def to_end(run: Execution, at: datetime, length: timedelta = S) -> None:
    record([said(STARTED, run.id, at=at)], at)
    record([said(COMPLETED, run.id, at=at + length, started_at=at)], at + length)


def start(now: datetime, room: int = 10) -> list[Execution]:
    """Give leave; those that have it now and have not begun."""
    start_catch_ups(SHARDS, room, now)
    rows = Execution.objects.filter(trigger__in=["catchup", "backfill"], state="Waiting").order_by("id")
    return [row for row in rows if row.check_at is not None and not is_held(row.check_at)]


def planned(job: Job, **conditions: Any) -> list[int]:
    rows = Execution.objects.filter(job_id=job.id, **conditions).order_by("id")
    return [(row.scheduled_for - FIRST) // MINUTE for row in rows]


def regular(job: Job) -> Execution:
    return Execution.objects.get(job_id=job.id, trigger="schedule", state="Waiting")


def test_missed_fires_run_in_order_one_at_a_time() -> None:
    job = after_outage()
    run_regular(job, BACK)
    now = BACK + 2 * S
    for minute in range(4):
        (run,) = start(now)
        assert (run.scheduled_for, run.check_at) == (FIRST + minute * MINUTE, now)
        assert start(now) == [run]
        assert count_under_way(SHARDS, now) == 1
        to_end(run, now)
        now += 2 * S
    assert planned(job, state="Completed Normally") == [0, 1, 2, 3, 60]
    assert planned(job, state="Waiting") == [4, 61]


def test_after_the_last_of_them_the_regular_chain_is_alone() -> None:
    job = after_outage(misfire="latest")
    run_regular(job, BACK)
    (run,) = start(BACK + 2 * S)
    to_end(run, BACK + 2 * S)
    assert planned(job, state="Waiting") == [61]
    assert start(BACK + 10 * S) == []


def test_none_starts_while_a_regular_run_is_under_way_or_about_to_begin() -> None:
    job = after_outage()
    assert start(BACK) == []  # 13:00 is due
    held_again = Execution.objects.get(job_id=job.id, trigger="catchup")
    assert held_again.check_at == held(BACK + AGAIN)  # it hides no other meanwhile
    run = Execution.objects.get(job_id=job.id, trigger="schedule")
    record([said(STARTED, run.id, at=BACK)], BACK)
    assert start(BACK + 5 * S) == []
    record([said(COMPLETED, run.id, at=BACK + 5 * S)], BACK + 5 * S)
    assert len(start(BACK + 7 * S)) == 1


def test_none_is_started_just_before_a_regular_run_is_due() -> None:
    job = after_outage()
    run_regular(job, BACK)
    due = FIRST + 61 * MINUTE
    assert start(due - SOON) == []
    record([said(CANCELLED, regular(job).id, at=due)], due)
    assert len(start(due + S)) == 1


def test_one_that_has_waited_long_takes_a_gap_however_short_and_the_place_of_what_is_due_then() -> None:
    job = after_outage()
    assert start(BACK) == []
    waits = Execution.objects.get(job_id=job.id, trigger="catchup")
    assert waits.message.startswith("waits since 2030-03-01 13:00:20 UTC for a gap between")
    run_regular(job, BACK)
    due = FIRST + 61 * MINUTE
    (run,) = start(due - S)
    assert regular(job).check_at == held(due)
    to_end(run, due - S, 2 * S)
    skipped = Execution.objects.get(job_id=job.id, reason="skipped_overlap")
    assert (skipped.scheduled_for, skipped.missed) == (due, 1)
    assert start(due + 59 * S) == []  # the next of them makes way again, as long as it is patient


@pytest.mark.parametrize("overlap", ["forbid", "replace"])
def test_one_that_finds_no_gap_is_given_up_with_all_that_follows_it(overlap: str) -> None:
    job = after_outage(overlap=overlap)
    run = Execution.objects.get(job_id=job.id, trigger="schedule")
    record([said(STARTED, run.id, at=BACK)], BACK)
    for at in (BACK + S, BACK + GIVE_UP, BACK + GIVE_UP + 2 * S):
        assert start(at) == []
    given_up = Execution.objects.get(job_id=job.id, reason="skipped_overlap")
    assert (given_up.trigger, given_up.scheduled_for, given_up.missed) == ("catchup", FIRST, 60)
    assert given_up.message.endswith(
        "did not run: for 10 minutes the regular runs left no gap to catch up in"
    )


def test_a_pause_is_no_reason_to_give_up() -> None:
    job = after_outage()
    Job.objects.filter(id=job.id).update(paused_at=BACK)
    for at in (BACK, BACK + 2 * GIVE_UP):
        assert start(at) == []
    waits = Execution.objects.get(job_id=job.id, trigger="catchup")
    assert (waits.state, waits.turned_away_at, waits.message) == ("Waiting", None, "")


def test_while_one_catches_up_the_next_regular_run_is_parked_and_then_goes_on() -> None:
    job = after_outage()
    run_regular(job, BACK)
    (run,) = start(BACK + 2 * S)
    due = FIRST + 61 * MINUTE
    assert regular(job).check_at == held(due)
    to_end(run, BACK + 2 * S)
    assert (regular(job).check_at, regular(job).generation) == (due, 2)


def test_a_fire_that_falls_into_a_run_that_catches_up_is_skipped() -> None:
    job = after_outage()
    run_regular(job, BACK)
    (run,) = start(BACK + 2 * S)
    to_end(run, BACK + 2 * S, 3 * MINUTE)
    skipped = Execution.objects.get(job_id=job.id, reason="skipped_overlap")
    assert (skipped.scheduled_for, skipped.missed) == (FIRST + 61 * MINUTE, 3)
    assert regular(job).scheduled_for == FIRST + 64 * MINUTE


def test_runs_that_may_overlap_catch_up_beside_the_regular_ones() -> None:
    job = after_outage(overlap="allow")
    (run,) = start(BACK)
    assert run.scheduled_for == FIRST
    assert not is_held(regular(job).check_at)  # type: ignore[arg-type]


def test_a_queue_catches_up_and_then_goes_on_with_what_passed_meanwhile() -> None:
    job = after_outage(overlap="queue", misfire={"policy": "all", "maxCount": 2})
    now = BACK
    for minute in (58, 59):
        (run,) = start(now)
        assert run.scheduled_for == FIRST + minute * MINUTE
        to_end(run, now, 2 * MINUTE)
        now += 2 * MINUTE
    following = regular(job)
    assert (following.scheduled_for, following.check_at) == (FIRST + 60 * MINUTE, now)


def test_a_paused_job_does_not_catch_up() -> None:
    job = after_outage(overlap="allow")
    Job.objects.filter(id=job.id).update(paused_at=BACK)
    assert start(BACK) == []
    Job.objects.filter(id=job.id).update(paused_at=None)
    assert len(start(BACK + 3 * S)) == 1


def test_the_room_is_for_those_that_have_waited_longest() -> None:
    jobs = [
        after_outage(name=f"job {n}", overlap="allow", misfire={"policy": "all", "maxCount": 9 - n})
        for n in range(4)
    ]
    found = start(BACK, room=2)
    assert [run.job_id for run in found] == [jobs[0].id, jobs[1].id]


def test_a_backfill_has_as_many_at_once_as_it_says_beside_the_regular_chain() -> None:
    job = new_job("* * * * *", CREATED)
    fires = [FIRST - n * MINUTE for n in range(5, 0, -1)]
    insert([new_execution(job, fire, Trigger.BACKFILL, check_at=held(fire), most_active=2) for fire in fires])
    first, second = start(CREATED)
    assert [first.scheduled_for, second.scheduled_for] == fires[:2]
    record([said(QUEUED, first.id), said(STARTED, second.id)], CREATED)
    assert start(CREATED + 3 * S) == [first]
    to_end(first, CREATED + 3 * S)
    assert [run.scheduled_for for run in start(CREATED + 6 * S)] == [fires[2]]
    assert planned(job, trigger="schedule") == [0]  # neither blocked nor made twice
    assert not is_held(regular(job).check_at)  # type: ignore[arg-type]


# replace


def replaced_job() -> tuple[Job, Execution]:
    """The run of 12:00 is under way; the one of 12:01 is parked."""
    job = new_job("* * * * *", CREATED, overlap="replace")
    run = Execution.objects.get(job_id=job.id)
    record([said(STARTED, run.id, at=FIRST)], FIRST)
    return job, run


def test_the_next_fire_replaces_the_run_under_way_and_starts_when_it_has_ended() -> None:
    job, run = replaced_job()
    assert regular(job).check_at == held(FIRST + MINUTE)
    assert relieve_parked(SHARDS, FIRST + MINUTE - S) == 0
    for _ in range(2):  # asked once
        relieve_parked(SHARDS, FIRST + MINUTE)
    run.refresh_from_db()
    assert (run.state, run.cancel_requested_at, run.reason) == ("Active", FIRST + MINUTE, "replaced")
    assert is_held(regular(job).check_at)  # type: ignore[arg-type]
    record(
        [said(CANCELLED, run.id, at=FIRST + MINUTE + S, reason="user", message="stopped")], FIRST + MINUTE + S
    )
    run.refresh_from_db()
    assert (run.state, run.reason) == ("Cancelled", "replaced")
    assert run.message == "cancelled by the run planned for 2030-03-01T12:01:00Z"
    assert regular(job).check_at == FIRST + MINUTE


def test_a_run_that_ends_in_time_leaves_the_next_to_its_time() -> None:
    job, run = replaced_job()
    record([said(COMPLETED, run.id, at=FIRST + S)], FIRST + S)
    assert regular(job).check_at == FIRST + MINUTE
    assert planned(job) == [0, 1]


def test_a_run_that_waits_for_a_worker_is_replaced_too() -> None:
    job = new_job("* * * * *", CREATED, overlap="replace")
    run = Execution.objects.get(job_id=job.id)
    record([said(QUEUED, run.id, at=FIRST)], FIRST)
    relieve_parked(SHARDS, FIRST + MINUTE)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("Cancelled", "replaced")
    assert regular(job).check_at == FIRST + MINUTE


def test_what_is_parked_for_nobody_is_released() -> None:
    job, run = replaced_job()
    Job.objects.filter(id=job.id).update(overlap="forbid")
    record([said(COMPLETED, run.id, at=FIRST + S)], FIRST + S)
    relieve_parked(SHARDS, FIRST + MINUTE)
    assert regular(job).check_at == FIRST + MINUTE


@pytest.mark.parametrize("overlap", ["allow", "replace"])
def test_a_run_that_is_cancelled_before_it_begins_is_followed_at_its_end(overlap: str) -> None:
    job = new_job("* * * * *", CREATED, overlap=overlap)
    record([said(CANCELLED, Execution.objects.get(job_id=job.id).id, at=CREATED)], CREATED)
    assert (planned(job), regular(job).check_at) == ([0, 1], FIRST + MINUTE)


# allow and retries


def test_runs_that_may_overlap_are_made_when_the_one_before_is_sent() -> None:
    job = new_job("* * * * *", CREATED, overlap="allow")
    run = Execution.objects.get(job_id=job.id)
    record([said(QUEUED, run.id, at=FIRST)], FIRST)
    assert planned(job) == [0, 1]
    to_end(run, FIRST, 5 * MINUTE)
    assert planned(job) == [0, 1]


def test_what_passed_during_earlier_attempts_fell_into_the_run() -> None:
    job = new_job("* * * * *", CREATED, retries=1, retryDelay="10m", misfire="none")
    run = Execution.objects.get(job_id=job.id)
    record([said(STARTED, run.id, at=FIRST)], FIRST)
    failed = said(FAILED, run.id, at=FIRST + S, started_at=FIRST)
    record([failed], FIRST + S)
    late = FIRST + 10 * MINUTE + 2 * S
    record([said(STARTED, run.id, 2, at=late)], late)
    record([said(COMPLETED, run.id, 2, at=late + S, started_at=late)], late + S)
    skipped = Execution.objects.get(job_id=job.id, state="Cancelled")
    assert (skipped.reason, skipped.missed) == ("skipped_overlap", 10)
    run.refresh_from_db()
    assert (run.first_started_at, run.started_at) == (FIRST, late)
