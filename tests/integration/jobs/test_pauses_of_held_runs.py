"""A pause lets no held run loose, and loses none of the fires that are still to be caught up with."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from executions.holding import held, is_held
from executions.models import Execution
from executions.store import Store
from executions.transitions import record
from jobs import services
from jobs.models import Job, Missed
from jobs.outages import settle_missed
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job
from tests.integration.jobs.test_catchups import start
from tests.integration.jobs.test_changes import root
from tests.integration.jobs.test_outages import missed_of
from tests.integration.making import COMPLETED, STARTED, said

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def pause(job: Job, at: datetime) -> None:
    services.pause_job(Job.objects.get(id=job.id), root(), at)


def resume(job: Job, at: datetime, missed: Missed = Missed.SKIP) -> None:
    services.resume_job(Job.objects.get(id=job.id), root(), at, missed)


def regular(job: Job) -> Execution:
    return Execution.objects.get(job_id=job.id, trigger="schedule", state="Waiting")


def begin(run: Execution, at: datetime) -> None:
    record([said(STARTED, run.id, at=at)], at)


def end(run: Execution, at: datetime) -> None:
    record([said(COMPLETED, run.id, at=at, started_at=at - SECOND)], at)


def catching_up(now: datetime, overlap: str = "forbid", every: str = "1h") -> tuple[Job, Execution]:
    """A job of which nine fires were missed; the run of the first is under way now."""
    job = new_job({"every": every}, now - 9.5 * HOUR, overlap=overlap, misfire="all")
    settle_missed(missed_of(job), now)
    (run,) = start(now)
    begin(run, now)
    return job, run


def states(job: Job) -> list[tuple[str, str, int]]:
    rows = Execution.objects.filter(job_id=job.id).order_by("id")
    return [(row.trigger, row.reason or row.state, row.missed) for row in rows]


@pytest.mark.parametrize("missed", list(Missed))
@pytest.mark.parametrize("hours", [2.1, 3.1, 9.1], ids=["at once", "after a fire", "after some"])
def test_what_is_parked_for_a_run_under_way_is_parked_after_a_pause(
    now: datetime, hours: float, missed: Missed
) -> None:
    job = new_job({"every": "1h"}, now, overlap="replace")
    run = Execution.objects.get(job_id=job.id)
    begin(run, now + HOUR)
    assert is_held(regular(job).check_at or now)
    pause(job, now + 1.1 * HOUR)
    resume(job, now + hours * HOUR, missed)
    following = regular(job)
    assert following.check_at == held(following.scheduled_for)
    assert following.scheduled_for > now + hours * HOUR
    end(run, now + hours * HOUR + SECOND)
    assert regular(job).check_at == following.scheduled_for


@pytest.mark.parametrize("overlap", ["forbid", "replace"])
@pytest.mark.parametrize("hours", [0.1, 1], ids=["at once", "after a fire"])
def test_the_regular_run_is_parked_for_one_that_catches_up_after_a_pause_too(
    now: datetime, overlap: str, hours: float
) -> None:
    job, run = catching_up(now, overlap)
    pause(job, now)
    resume(job, now + hours * HOUR)
    following = regular(job)
    assert following.check_at == held(following.scheduled_for)
    end(run, now + hours * HOUR + SECOND)
    assert regular(job).check_at == following.scheduled_for


def test_a_retry_that_was_paused_holds_the_next_run_too(now: datetime) -> None:
    job = new_job({"every": "1h"}, now, overlap="replace", retries=3)
    run = Execution.objects.get(job_id=job.id)
    begin(run, now + HOUR)
    Execution.objects.filter(id=run.id).update(state="Waiting", attempt=2, check_at=now + 1.2 * HOUR)
    pause(job, now + 1.1 * HOUR)
    resume(job, now + 1.1 * HOUR)
    following = Execution.objects.get(job_id=job.id, attempt=1)
    assert following.check_at == held(following.scheduled_for)


@pytest.mark.parametrize("missed", [Missed.RUN_LATEST, Missed.RUN_ALL])
def test_what_is_still_to_be_caught_up_with_goes_on_after_a_pause(now: datetime, missed: Missed) -> None:
    job, run = catching_up(now)
    pause(job, now)
    end(run, now + SECOND)
    assert ("catchup", "paused", 0) in states(job)
    at = now + 2 * SECOND
    resume(job, at, missed)
    for _ in range(8):
        (run,) = start(at)
        begin(run, at)
        end(run, at + SECOND)
        at += 2 * SECOND
    assert start(at) == []
    assert [row[1] for row in states(job) if row[0] == "catchup"] == ["Completed Normally"] * 9


@pytest.mark.parametrize("ends_meanwhile", [True, False])
def test_what_is_still_to_be_caught_up_with_is_one_skipped_row(now: datetime, ends_meanwhile: bool) -> None:
    job, run = catching_up(now)
    if not ends_meanwhile:
        end(run, now + SECOND)
    pause(job, now + SECOND)
    if ends_meanwhile:
        end(run, now + 2 * SECOND)
    resume(job, now + 3 * SECOND)
    assert states(job) == [
        ("catchup", "Completed Normally", 0),
        ("catchup", "skipped_paused", 8),
        ("schedule", "Waiting", 0),
    ]


def test_in_a_queue_every_fire_that_a_pause_skips_is_counted(now: datetime) -> None:
    job, run = catching_up(now, "queue")
    pause(job, now)
    end(run, now + SECOND)
    resume(job, now + 2 * SECOND)
    rows = states(job)
    assert sum(row[2] for row in rows) == 8
    assert rows[-1] == ("schedule", "Waiting", 0)


def test_a_job_that_is_deleted_while_it_catches_up_goes_on_with_nothing(now: datetime) -> None:
    job, run = catching_up(now)
    pause(job, now)
    services.archive_job(Job.objects.get(id=job.id), root(), now)
    end(run, now + SECOND)
    assert {row[1] for row in states(job)} == {"Completed Normally", "deleted"}
