"""``manage.py jobs``"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from executions.models import Execution
from executions.states import State
from executions.store import default_store
from executions.transitions import record
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.commands.conftest import Manage
from tests.integration.making import COMPLETED, STARTED, said
from tests.integration.proxy import proxy_before

Making = Callable[..., Job]


def states_of(job: Job) -> list[str]:
    return list(Execution.objects.filter(job_id=job.id).order_by("id").values_list("state", flat=True))


def test_jobs_are_listed_as_rest_lists_them(manage: Manage, new_job: Making) -> None:
    job, _ = new_job("nightly"), new_job("hourly", owner="sales", schedule={"every": "1h"})
    listed = manage("jobs", "list", "--json").json
    assert listed["next"] is None
    assert {found["name"] for found in listed["results"]} == {"nightly", "hourly"}
    (found,) = manage("jobs", "list", "--owner", "ops", "--json").json["results"]
    assert (found["id"], found["owner"], found["schedule"]) == (str(job.id), "ops", job.schedule)
    assert found["nextRunAt"].endswith("Z")


def test_a_page_says_where_the_next_one_begins(manage: Manage, new_job: Making) -> None:
    made = {str(new_job(name).id) for name in ("a", "b", "c")}
    first = manage("jobs", "list", "--limit", "2", "--json").json
    second = manage("jobs", "list", f"--cursor={first['next']}", "--json").json
    assert {job["id"] for job in first["results"] + second["results"]} == made
    assert (len(first["results"]), second["next"]) == (2, None)
    assert f"--cursor={first['next']}" in manage("jobs", "list", "--limit", "2").err


def test_jobs_are_narrowed_and_ordered_as_over_rest(manage: Manage, new_job: Making) -> None:
    new_job("a", type="Script", command="true", queue="etl", priority="high", description="Warehouse")
    new_job("b")
    manage("jobs", "pause", "b")

    def names(*words: str) -> list[str]:
        return [job["name"] for job in manage("jobs", "list", "--json", *words).json["results"]]

    assert names("--ordering", "name") == ["a", "b"] == names("--ordering=-name")[::-1]
    for words in (("--type", "Script"), ("--status", "active"), ("--queue", "etl"), ("--priority", "high")):
        assert names(*words) == ["a"]
    assert names("--search", "wareHOUSE") == ["a"]
    assert names("--status", "paused") == ["b"]
    assert names("--pool", "none") == names("--task", "none") == []
    first = manage("jobs", "list", "--ordering=-name", "--limit", "1", "--json").json
    assert names("--ordering=-name", f"--cursor={first['next']}") == ["a"]
    for name in ("status", "ordering"):
        assert "'asleep' is not one of" in manage("jobs", "list", f"--{name}", "asleep").err


@pytest.mark.parametrize("columns", [80, 60])
def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(
    manage: Manage, new_job: Making, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    job = new_job("a-name-of-a-job-" * 8)
    shown = manage("jobs", "list", terminal=True).out.splitlines()
    assert max(map(len, shown)) <= columns
    assert shown[0].split() == ["ID", "JOB", "SCHEDULE", "NEXT", "RUN", "IS"]
    assert "…" in shown[1] and shown[1].startswith(str(job.id)[:8])
    piped = manage("jobs", "list").out
    assert f"ops/{job.name}" in piped and str(job.id) in piped and "\x1b" not in piped


@pytest.mark.parametrize(
    "call", [lambda job: str(job.id), lambda job: str(job.id)[:13], lambda job: job.name]
)
def test_a_job_is_found_by_what_people_call_it(
    manage: Manage, new_job: Making, call: Callable[[Job], str]
) -> None:
    job = new_job()
    new_job("other")
    assert manage("jobs", "show", call(job), "--json").json["id"] == str(job.id)


def test_a_name_of_several_jobs_needs_the_owner(manage: Manage, new_job: Making) -> None:
    ours, _ = new_job(), new_job(owner="sales")
    unclear = manage("jobs", "show", "nightly")
    assert unclear.code == 2
    assert "names several jobs: ops/nightly (" in unclear.err and "sales/nightly (" in unclear.err
    assert manage("jobs", "show", "ops/nightly", "--json").json["id"] == str(ours.id)


def test_names_may_hold_slashes(manage: Manage, new_job: Making) -> None:
    job = new_job("daily/sales", owner="a/b")
    assert manage("jobs", "show", "a/b/daily/sales", "--json").json["id"] == str(job.id)


def test_what_is_not_there_is_a_status_of_its_own(manage: Manage) -> None:
    assert manage("jobs", "show", "none").code == 3
    assert manage("jobs", "list", "--user", "nobody").code == 3


def test_a_job_is_shown_with_its_schedule_in_words(manage: Manage, new_job: Making) -> None:
    job = new_job(schedule="0 2 * * *", description="Loads it")
    shown = manage("jobs", "show", "nightly").out
    assert "At 02:00" in shown and "Loads it" in shown and "on its schedule" in shown
    assert manage("jobs", "show", str(job.id), "--json").json["latestExecution"] is None


def test_a_next_run_that_is_overdue_says_so(manage: Manage, new_job: Making) -> None:
    new_job()
    assert "(overdue)" not in manage("jobs", "list").out
    Execution.objects.update(scheduled_for=utcnow() - timedelta(minutes=2))
    assert "(overdue)" in manage("jobs", "list").out and "(overdue)" in manage("jobs", "show", "nightly").out


def test_a_run_gets_its_parameters(manage: Manage, new_job: Making) -> None:
    new_job(parameters={"day": "today"})
    answer = manage("jobs", "run", "nightly", "-p", "day=2026-12-01", "-p", "rows=3", "--json").json
    run = Execution.objects.get(id=answer["executionId"])
    assert run.spec.body["parameters"] == {"day": "2026-12-01", "rows": 3}
    assert answer["made"] is True


def test_the_same_key_is_the_same_run(manage: Manage, new_job: Making) -> None:
    new_job()
    first = manage("jobs", "run", "nightly", "--key", "k1", "--json").json
    again = manage("jobs", "run", "nightly", "--key", "k1", "--json").json
    assert (again["executionId"], again["made"]) == (first["executionId"], False)
    other = manage("jobs", "run", "nightly", "--key", "k1", "-p", "a=b")
    assert other.code == 1 and "was used" in other.err and other.err.count("\n") == 1


@pytest.mark.parametrize("word", ["day", "=3", "a-b c=1"])
def test_a_parameter_that_is_none_is_an_error_of_usage(manage: Manage, new_job: Making, word: str) -> None:
    job = new_job()
    refused = manage("jobs", "run", "nightly", "-p", word)
    assert refused.code == 2 and refused.err.count("\n") == 1
    assert len(states_of(job)) == 1


def test_pausing_and_resuming_several(manage: Manage, new_job: Making) -> None:
    jobs = [new_job("a"), new_job("b")]
    said_ = manage("jobs", "pause", "a", "ops/b")
    assert said_.out == "ops/a: paused\nops/b: paused\n"
    assert all(Job.objects.get(id=job.id).paused_at for job in jobs)
    assert [job["pausedAt"] for job in manage("jobs", "resume", "a", "b", "--json").json["results"]] == [
        None
    ] * 2


def test_a_name_that_is_none_changes_nothing(manage: Manage, new_job: Making) -> None:
    job = new_job("a")
    assert manage("jobs", "pause", "a", "none").code == 3
    assert Job.objects.get(id=job.id).paused_at is None


def test_cancel_ends_what_waits_and_asks_what_runs(manage: Manage, new_job: Making) -> None:
    job = new_job(schedule="0 2 * * *")
    run = Execution.objects.get(id=manage("jobs", "run", "nightly", "--json").json["executionId"])
    record([said(STARTED, run.id)], utcnow())
    ((answer),) = manage("jobs", "cancel", "nightly", "--json").json["results"]
    statuses = {done["id"]: done["status"] for done in answer["executions"]}
    assert statuses.pop(str(run.id)) == "Active"
    assert list(statuses.values()) == ["Cancelled"]
    run.refresh_from_db()
    assert run.cancel_requested_at is not None
    assert states_of(job).count(State.WAITING) == 1  # the schedule goes on


def test_cancel_running_leaves_what_waits(manage: Manage, new_job: Making) -> None:
    job = new_job(schedule="0 2 * * *")
    assert manage("jobs", "cancel", "nightly", "--running").out == "ops/nightly: nothing to cancel\n"
    assert states_of(job) == [State.WAITING]


def test_what_has_ended_is_not_cancelled(manage: Manage, new_job: Making) -> None:
    job = new_job(schedule="now")
    run = Execution.objects.get(job_id=job.id)
    record([said(STARTED, run.id), said(COMPLETED, run.id)], utcnow())
    assert manage("jobs", "cancel", "nightly").out == "ops/nightly: nothing to cancel\n"


def test_an_archived_job_is_not_there_any_more(manage: Manage, new_job: Making) -> None:
    new_job()
    assert manage("jobs", "archive", "nightly").out == "ops/nightly: archived\n"
    assert manage("jobs", "show", "nightly").code == 3


# --- Whose rights count ---------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["show", "run", "pause", "resume", "cancel", "archive"])
def test_a_user_of_another_team_finds_no_such_job(
    manage: Manage, new_job: Making, member_of: Callable[..., User], action: str
) -> None:
    job = new_job()
    member_of("otto", "marketing")
    assert manage("jobs", action, "nightly", "--user", "otto").code == 3
    assert manage("jobs", action, str(job.id), "--user", "otto").code == 3
    assert manage("jobs", "list", "--user", "otto", "--json").json["results"] == []


@pytest.mark.parametrize("action", ["run", "pause", "resume", "cancel", "archive"])
def test_a_viewer_is_refused(
    manage: Manage, new_job: Making, member_of: Callable[..., User], action: str
) -> None:
    job = new_job()
    member_of("vera", "ops", "viewers")
    refused = manage("jobs", action, "nightly", "--user", "vera")
    assert refused.code == 1 and refused.err.count("\n") == 1
    assert manage("jobs", "show", "nightly", "--user", "vera").code == 0
    assert states_of(job) == [State.WAITING]


def test_a_user_who_is_not_active_may_nothing(manage: Manage, member_of: Callable[..., User]) -> None:
    member_of("ina", "ops", is_active=False)
    assert manage("jobs", "list", "--user", "ina").code == 1


@pytest.mark.django_db(transaction=True)
def test_without_redis_a_command_says_so_in_words_and_the_log_only_where_asked_for(
    manage: Manage, new_job: Making, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    job = new_job()
    with proxy_before(settings.REDIS_URL) as (redis, settings.REDIS_URL):
        default_store.cache_clear()
        redis.go_away()
        told = manage("jobs", "run", str(job.id))
        assert told.code == 0
        assert "when Redis answers again" in told.out + told.err
        assert "push_lost" not in caplog.text
        assert manage("jobs", "-v", "2", "run", str(job.id)).code == 0
        assert "push_lost" in caplog.text
    default_store.cache_clear()
