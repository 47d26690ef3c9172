"""A change of a job reaches its runs at once, whatever the route and wherever they are."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.policy import System
from access.trail.models import ChangeRecord
from executions.claims import Claimed, Claims
from executions.holding import is_held
from executions.models import Execution, ExecutionEvent
from executions.rescheduling import reschedule_execution
from executions.services import Cancelling, cancel_execution
from executions.store import Store
from executions.transitions import record
from executions.window import Window
from jobs import services
from jobs.catchups import start_catch_ups
from jobs.changes import settle, unsettled
from jobs.definitions import definition_body, read_definition
from jobs.models import Job, Missed
from jobs.runs import RunRequest, run_job
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict
from tests.integration.executions.test_transitions import in_threads
from tests.integration.jobs.chain import new_job
from tests.integration.making import COMPLETED, FAILED, STARTED, said

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
LEASE = timedelta(seconds=30)


@pytest.fixture
def now(store: Store) -> datetime:
    return utcnow()


def root() -> User:
    return User.objects.get(username="root")


def change(job: Job, now: datetime, **fields: Any) -> Job:
    job = Job.objects.select_related("owner", "task").get(id=job.id)
    return services.update_job(job, read_definition({**definition_body(job), **fields}), root(), now)


def runs(job: Job) -> list[Execution]:
    return list(Execution.objects.filter(job_id=job.id).order_by("id"))


def waiting(job: Job) -> Execution:
    return Execution.objects.get(job_id=job.id, state="Waiting")


def command_of(run: Execution) -> str:
    return str(run.spec.body["command"])


def is_settled(job: Job) -> bool:
    job.refresh_from_db()
    return job.revision == job.settled_revision


def send(window: Window, job: Job) -> list[tuple[UUID, int]]:
    """Pop what is due and confirm it, as a beat does; what was sent: execution and generation."""
    (due,) = window.pop([job.shard], LEASE, 100)
    window.confirm(due.runs, due.now, timedelta(minutes=5))
    return [(run.execution_id, run.generation) for run in due.runs]


def claim(window: Window, sent: tuple[UUID, int]) -> Claimed:
    return Claims(window.store, "worker", LEASE).claim(sent[0], 1, generation=sent[1])


def test_a_run_far_away_gets_the_new_snapshot(now: datetime) -> None:
    job = new_job({"after": "2h"}, now)
    before = waiting(job)
    changed = change(job, now, command="false", retries=5)
    run = waiting(job)
    assert (run.id, run.check_at, run.generation) == (before.id, before.check_at, 0)
    assert (command_of(run), run.spec.body["retries"]) == ("false", 5)
    assert changed.spec_id == run.spec_id != before.spec_id
    assert is_settled(job)


def test_a_run_in_its_bucket_runs_what_the_job_says_now(window: Window, now: datetime) -> None:
    job = new_job({"after": "2s"}, now - 2 * SECOND)
    change(job, now, command="false")
    assert send(window, job) == [(waiting(job).id, 2)]  # the old entry has gone
    assert window.specs({job.shard: [waiting(job).spec_id.bytes[:8]]})


def test_a_run_that_is_queued_runs_what_the_job_says_now(window: Window, now: datetime) -> None:
    job = new_job("now", now)
    (old,) = send(window, job)
    change(job, now, command="false")
    (new,) = send(window, job)
    assert new == (old[0], 2)
    assert claim(window, old) is Claimed.STALE
    assert claim(window, new) is Claimed.WON
    assert command_of(waiting(job)) == "false"


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_run_that_has_begun_is_left_alone(window: Window, now: datetime, handed_over: bool) -> None:
    """Moved, changed, deleted, cancelled: each asks the claim, and what a worker has left behind."""
    job = new_job("now", now)
    (old,) = send(window, job)
    assert claim(window, old) is Claimed.WON  # and nobody has recorded it yet
    if handed_over:
        Claims(window.store, "worker", LEASE).give_up(old[0], 1)
    with pytest.raises(Conflict, match="has begun"):
        reschedule_execution(old[0], now + HOUR, System("mia"), now)
    change(job, now, command="false")
    services.archive_job(Job.objects.get(id=job.id), root(), now)
    run = waiting(job)
    assert (command_of(run), run.generation) == ("true", 6)
    assert send(window, job) == []
    assert is_settled(job)
    assert cancel_execution(old[0], System("mia"), now) is Cancelling.REQUESTED
    assert waiting(job).cancel_requested_at == now


def test_a_new_schedule_moves_the_next_occurrence(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    change(job, now + HOUR, schedule={"every": "3h"})
    old, new = runs(job)
    assert (old.state, old.reason) == ("Cancelled", "rescheduled")
    assert (new.state, new.scheduled_for) == ("Waiting", now + 4 * HOUR)
    assert [e.type for e in ExecutionEvent.objects.filter(execution_id=old.id)] == ["JOB_CANCELLED"]


def test_a_schedule_that_is_changed_back_has_its_run_again(now: datetime) -> None:
    job = new_job({"at": "2031-01-01T00:00:00Z"}, now)
    change(job, now, schedule={"at": "2032-01-01T00:00:00Z"})
    change(job, now, schedule={"at": "2031-01-01T00:00:00Z"})
    assert waiting(job).scheduled_for.year == 2031
    assert [run.state for run in runs(job)].count("Cancelled") == 2


def test_an_occurrence_that_both_schedules_plan_stays(now: datetime) -> None:
    job = new_job({"cron": "0 2 * * *"}, now)
    before = waiting(job)
    change(job, now, schedule={"cron": "0 2 * * *", "dstGap": "skip"})
    (run,) = runs(job)
    assert (run.id, run.state) == (before.id, "Waiting")
    assert run.spec.body["schedule"]["dstGap"] == "skip"


def test_the_same_again_changes_nothing(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    before = waiting(job)
    changed = change(job, now + SECOND, schedule={"every": "2h"}, command="true")
    assert (changed.revision, waiting(job).id) == (1, before.id)


def test_a_paused_job_starts_nothing_and_goes_on_when_it_is_resumed(window: Window, now: datetime) -> None:
    job = new_job("now", now)
    (old,) = send(window, job)
    services.pause_job(job, root(), now)
    (run,) = runs(job)
    assert (run.state, run.check_at) == ("Paused", None)
    assert claim(window, old) is Claimed.STALE
    services.resume_job(job, root(), now, Missed.RUN_LATEST)
    assert start_catch_ups([job.shard], 1, now) == 1  # the beat gives it leave
    (new,) = send(window, job)
    assert claim(window, new) is Claimed.WON
    kinds = [event.type for event in ExecutionEvent.objects.filter(execution_id=run.id).order_by("at")]
    assert sorted(kinds) == ["JOB_PAUSED", "JOB_RESUMED"]


def test_a_paused_occurrence_to_come_waits_again_for_its_time(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    services.pause_job(job, root(), now)
    services.resume_job(job, root(), now + HOUR)
    (run,) = runs(job)
    assert (run.state, run.check_at) == ("Waiting", now + 2 * HOUR)


def test_times_that_passed_while_it_was_paused_are_skipped(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    services.pause_job(job, root(), now)
    services.resume_job(job, root(), now + 5 * HOUR)
    first, run = runs(job)[0], waiting(job)
    assert (first.state, first.reason) == ("Cancelled", "skipped_paused")
    assert run.scheduled_for == now + 6 * HOUR


@pytest.mark.parametrize(
    ("choice", "overlap", "expected"),
    [
        (Missed.SKIP, "forbid", [(2, "skipped_paused", 2), (6, "", 0)]),
        (Missed.RUN_LATEST, "forbid", [(2, "skipped_paused", 1), (4, "", 0), (6, "", 0)]),
        (Missed.RUN_ALL, "forbid", [(2, "", 0), (6, "", 0)]),
        (Missed.RUN_ALL, "queue", [(2, "", 0)]),  # the next follows when its turn has come
        (Missed.SKIP, "queue", [(2, "skipped_paused", 2), (6, "", 0)]),
    ],
)
def test_what_passed_while_it_was_paused_is_for_who_resumes_it(
    now: datetime, choice: Missed, overlap: str, expected: list[tuple[int, str, int]]
) -> None:
    job = new_job({"every": "2h"}, now, overlap=overlap)
    services.pause_job(job, root(), now)
    services.resume_job(job, root(), now + 5 * HOUR, choice)
    found = [((run.scheduled_for - now) // HOUR, run.reason, run.missed) for run in runs(job)]
    assert found == expected


def test_a_schedule_changed_while_it_is_paused_counts_when_it_is_resumed(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    services.pause_job(job, root(), now)
    change(job, now, schedule={"every": "3h"}, command="false")
    assert not Execution.objects.filter(job_id=job.id, state__in=["Waiting", "Paused"]).exists()
    services.resume_job(job, root(), now + HOUR)
    run = waiting(job)
    assert (run.scheduled_for, command_of(run)) == (now + 3 * HOUR, "false")


def test_a_deleted_job_starts_nothing_and_its_name_is_free(window: Window, now: datetime) -> None:
    job = new_job("now", now)
    (old,) = send(window, job)
    services.archive_job(job, root(), now)
    (run,) = runs(job)
    assert (run.state, run.reason) == ("Cancelled", "deleted")
    assert claim(window, old) is Claimed.STALE
    assert new_job("now", now).name == job.name


@pytest.mark.parametrize("assign", ["command = 'false'", "retries = 3", 'env = \'{"A": "b"}\''])
def test_sql_by_hand_is_carried_out_by_whoever_settles(window: Window, now: datetime, assign: str) -> None:
    job = new_job("now", now)
    (old,) = send(window, job)
    sql(f"UPDATE jobs_job SET {assign}")
    assert unsettled([job.shard], utcnow()) == [job.id]
    settle(job.id, now)
    assert unsettled([job.shard], utcnow()) == []
    (new,) = send(window, job)
    assert (claim(window, old), claim(window, new)) == (Claimed.STALE, Claimed.WON)
    assert waiting(job).spec_id == Job.objects.get(id=job.id).spec_id


@pytest.mark.parametrize(("stop", "state"), [("pause_job", "Paused"), ("archive_job", "Cancelled")])
def test_a_run_that_fails_after_its_job_was_stopped_is_not_tried_again(
    stop: str, state: str, now: datetime
) -> None:
    job = new_job("now", now, retries=3, retryDelay="1m")
    record([said(STARTED, waiting(job).id)], now)
    getattr(services, stop)(job, root(), now)
    assert is_settled(job)
    (run,) = runs(job)
    record([said(FAILED, run.id)], now)
    assert unsettled([job.shard], utcnow()) == [job.id]
    settle(job.id, now)
    run.refresh_from_db()
    assert (run.state, run.attempt) == (state, 2)


def test_a_run_that_fails_and_is_tried_again_leaves_its_job_settled(now: datetime) -> None:
    job = new_job("now", now, retries=3)
    record([said(STARTED, waiting(job).id), said(FAILED, waiting(job).id)], now)
    assert waiting(job).attempt == 2
    assert is_settled(job)


def test_a_retry_that_waits_gets_the_change_whatever_was_changed_before(now: datetime) -> None:
    job = new_job("now", now, command="old", retries=3, retryDelay="1m")
    record([said(STARTED, waiting(job).id)], now)
    change(job, now, command="first")
    record([said(FAILED, runs(job)[0].id)], now)
    assert command_of(waiting(job)) == "old"  # it began before
    change(job, now, command="second")
    assert command_of(waiting(job)) == "second"
    change(job, now, description="nothing that a run would know of")
    assert command_of(waiting(job)) == "second"


def test_a_run_with_parameters_of_its_own_keeps_those_through_a_change(window: Window, now: datetime) -> None:
    job = new_job({"every": "1h"}, now, command="old", parameters={"day": "1", "size": "s"})
    own = run_job(job, root(), now, RunRequest({"size": "l"})).execution_id
    ((sent, generation),) = send(window, job)
    change(job, now, command="new", parameters={"day": "2", "size": "m"})
    spec = Execution.objects.get(id=own).spec.body
    assert (spec["command"], spec["parameters"]) == ("new", {"day": "2", "size": "l"})
    assert (sent, claim(window, (sent, generation))) == (own, Claimed.STALE)


@pytest.mark.parametrize("by", ["queryset", "sql"])
def test_a_job_that_is_deleted_past_the_services_is_archived(by: str, now: datetime) -> None:
    job = new_job({"every": "1m"}, now)
    run = waiting(job)

    def delete() -> None:
        if by == "queryset":
            Job.objects.filter(id=job.id).delete()
        else:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM jobs_job WHERE id = %s", [job.id])

    delete()
    delete()
    assert unsettled([job.shard], utcnow()) == [job.id]
    settle(job.id, now)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("Cancelled", "deleted")
    assert is_settled(job)
    assert job.archived_at is not None
    delete()
    assert not Job.objects.filter(id=job.id)


def test_a_schedule_written_by_sql_is_brought_to_its_normal_form(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    sql("""UPDATE jobs_job SET schedule = '"0 5 * * *"'""")
    settle(job.id, now)
    job.refresh_from_db()
    assert job.schedule["cron"] == "0 5 * * *"
    assert (waiting(job).scheduled_for.hour, waiting(job).scheduled_for.minute) == (5, 0)
    assert is_settled(job)


@pytest.mark.parametrize(
    "assign",
    ['schedule = \'{"cron": "61 * * * *"}\'', "env = '5'", "command = '{{ nope'", "parameters = '[]'"],
)
def test_a_row_that_cannot_be_read_says_so_and_is_mended_by_the_next_change(
    now: datetime, assign: str
) -> None:
    job = new_job({"every": "2h"}, now)
    before = waiting(job)
    sql(f"UPDATE jobs_job SET {assign}")
    settle(job.id, now)
    job.refresh_from_db()
    assert job.problem.startswith(assign.split(maxsplit=1)[0])
    assert unsettled([job.shard], utcnow()) == []
    assert waiting(job).id == before.id
    mended = Job.objects.filter(id=job.id)
    mended.update(schedule={"every": "3h"}, env={}, command="true", parameters={})
    settle(job.id, now)
    job.refresh_from_db()
    assert (job.problem, waiting(job).scheduled_for) == ("", now + 3 * HOUR)


def test_settling_twice_changes_nothing(window: Window, now: datetime) -> None:
    job = new_job("now", now)
    change(job, now, command="false")
    before = Execution.objects.values().get(job_id=job.id)
    sql("UPDATE jobs_job SET revision = revision + 1")
    settle(job.id, now)
    settle(job.id, now)
    assert Execution.objects.values().get(job_id=job.id) == before
    assert len(send(window, job)) == 1


def test_where_redis_is_away_the_change_waits_for_the_beats(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executions import redirection

    job = new_job("now", now)
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    with monkeypatch.context() as patch:
        patch.setattr(redirection, "default_store", lambda: gone)
        assert change(job, now, command="false").command == "false"
    assert not is_settled(job)
    settle(job.id, now)
    assert is_settled(job)
    assert command_of(waiting(job)) == "false"


def sql(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


@pytest.mark.parametrize(
    ("missed", "trigger", "planned"),
    [
        (Missed.SKIP, "schedule", [6]),
        (Missed.RUN_LATEST, "catchup", [4, 6]),
        (Missed.RUN_ALL, "catchup", [2, 6]),
    ],
)
def test_times_that_passed_after_its_last_run_ended_during_a_pause(
    now: datetime, missed: Missed, trigger: str, planned: list[int]
) -> None:
    job = new_job({"every": "2h", "anchor": (now - 2 * HOUR).isoformat()}, now - SECOND)
    (run,) = runs(job)
    record([said(STARTED, run.id, at=now)], now)
    services.pause_job(job, root(), now)
    record([said(COMPLETED, run.id, at=now + SECOND, started_at=now)], now + SECOND)
    assert [run.state for run in runs(job)] == ["Completed Normally"]
    services.resume_job(job, root(), now + 5 * HOUR, missed)
    left = Execution.objects.filter(job_id=job.id, state="Waiting").order_by("id")
    assert [run.scheduled_for for run in left] == [now + n * HOUR for n in planned]
    assert left[0].trigger == trigger


def test_what_is_caught_up_with_after_a_change_has_the_new_snapshot(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    services.pause_job(job, root(), now)
    change(job, now, command="false")
    services.resume_job(job, root(), now + 5 * HOUR, Missed.RUN_LATEST)
    left = Execution.objects.filter(job_id=job.id, state="Waiting")
    assert {command_of(run) for run in left} == {"false"}
    assert left.count() == 2


def test_the_successor_of_a_parked_run_is_parked_too(now: datetime) -> None:
    job = new_job({"every": "2h"}, now, overlap="replace")
    (run,) = runs(job)
    record([said(STARTED, run.id, at=now + 2 * HOUR)], now + 2 * HOUR)
    assert is_held(waiting(job).check_at or now)
    change(job, now + 3 * HOUR, schedule={"every": "5h"})
    new = waiting(job)
    assert new.scheduled_for == now + 8 * HOUR
    assert is_held(new.check_at or now)


def test_a_job_that_cannot_be_read_can_be_stopped(now: datetime) -> None:
    job = new_job({"every": "2h"}, now)
    sql("UPDATE jobs_job SET env = '5'")
    services.pause_job(Job.objects.get(id=job.id), root(), now)
    assert [run.state for run in runs(job)] == ["Paused"]
    services.resume_job(Job.objects.get(id=job.id), root(), now, Missed.RUN_ALL)
    assert [run.state for run in runs(job)] == ["Paused"]
    Job.objects.filter(id=job.id).update(env={})
    settle(job.id, now + 3 * HOUR)
    assert [run.trigger for run in runs(job) if run.state == "Waiting"] == ["catchup", "schedule"]
    sql("UPDATE jobs_job SET env = '5'")
    services.archive_job(Job.objects.get(id=job.id), root(), now)
    assert {run.state for run in runs(job)} == {"Cancelled"}


def test_of_several_who_settle_at_once_one_does_and_the_run_is_sent_again(
    window: Window, now: datetime
) -> None:
    for number in range(8):
        job = new_job("now", now, name=f"raced {number}")
        (old,) = send(window, job)
        Job.objects.filter(id=job.id).update(command="false")
        assert in_threads(*[partial(settle, job.id, now)] * 3) == []
        run = waiting(job)
        assert is_settled(job)
        assert run.generation % 2 == 0
        (new,) = send(window, job)
        assert (claim(window, old), claim(window, new)) == (Claimed.STALE, Claimed.WON)


@pytest.mark.parametrize("by", ["service", "sql"])
def test_new_jitter_runs_nothing_again(by: str, now: datetime) -> None:
    job = new_job("now", now)
    record([said(STARTED, waiting(job).id), said(COMPLETED, waiting(job).id)], now)
    if by == "service":
        change(job, now, jitter="5s")
    else:
        Job.objects.filter(id=job.id).update(jitter=5 * SECOND)
        settle(job.id, now)
    assert [run.state for run in runs(job)] == ["Completed Normally"]
    assert is_settled(job)


def test_the_most_urgent_change_is_carried_out_first(now: datetime) -> None:
    jobs = [
        new_job({"at": (now + hours * HOUR).isoformat()}, now, name=f"in {hours} hours")
        for hours in (5, 1, 9, 3)
    ]
    Job.objects.update(shard=3, command="false")
    assert unsettled([3], now) == [jobs[1].id, jobs[3].id, jobs[0].id, jobs[2].id]


def test_null_for_a_schedule_is_said_and_the_job_can_be_stopped(now: datetime) -> None:
    job = new_job("now", now)
    sql("UPDATE jobs_job SET schedule = 'null'::jsonb")
    settle(job.id, now)
    assert is_settled(job)
    assert "schedule" in job.problem
    services.archive_job(job, root(), now)
    assert [run.state for run in runs(job)] == ["Cancelled"]


def test_a_job_that_is_changed_is_read_once(now: datetime) -> None:
    made = new_job({"cron": "0 2 * * *"}, now)
    job = Job.objects.select_related("owner", "task", "pool").get(id=made.id)
    definition = read_definition({**definition_body(job), "retries": 7})
    with CaptureQueriesContext(connection) as asked:
        changed = services.update_job(job, definition, root(), now)
    reads = [query["sql"] for query in asked if query["sql"].startswith('SELECT "jobs_job"."id"')]
    assert changed.retries == 7
    assert len([sql for sql in reads if "auth_group" in sql]) == 2  # once here, once to settle its runs
    record = ChangeRecord.objects.get(job_id=job.id, what="changed")
    assert record.changes == {"retries": [0, 7]}
