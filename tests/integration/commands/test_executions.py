"""``manage.py executions``"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from executions.models import Execution
from executions.states import State
from executions.transitions import record
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.commands.conftest import Manage
from tests.integration.making import FAILED, STARTED, said

Making = Callable[..., Job]


@pytest.fixture
def run(new_job: Making) -> Execution:
    return Execution.objects.get(job_id=new_job(schedule="0 2 * * *", retries=0).id)


def test_runs_are_listed_as_rest_lists_them(manage: Manage, run: Execution) -> None:
    (found,) = manage("executions", "list", "--json").json["results"]
    assert (found["id"], found["jobName"], found["status"]) == (str(run.id), "nightly", "Waiting")
    (found,) = manage(
        "executions", "list", "--job", "ops/nightly", "--status", "Waiting,Active", "--json"
    ).json["results"]
    assert manage("executions", "list", "--status", "Active", "--json").json["results"] == []
    assert manage("executions", "list", "--owner", "none").code == 3


def test_runs_are_narrowed_and_ordered_as_over_rest(manage: Manage, new_job: Making) -> None:
    jobs = [new_job(f"job-{day}", schedule={"at": f"2030-05-0{day}T12:00:00Z"}) for day in (1, 2)]
    early, late = (Execution.objects.get(job_id=job.id) for job in jobs)
    Execution.objects.filter(id=late.id).update(reason="pool_full", attempt=2)

    def ids(*words: str) -> list[str]:
        return [run["id"] for run in manage("executions", "list", "--json", *words).json["results"]]

    assert ids() == [str(late.id), str(early.id)]
    assert ids("--ordering", "scheduledFor") == [str(early.id), str(late.id)]
    assert ids("--reason", "pool_full,lost") == ids("--attempt", "2") == [str(late.id)]
    assert ids("--trigger", "schedule", "--attempt", "1") == [str(early.id)]
    assert ids("--trigger", "manual") == []
    assert "'startedAt' is not one of" in manage("executions", "list", "--ordering", "startedAt").err


def test_the_table_fits_eighty_columns(
    manage: Manage, run: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Execution.objects.filter(id=run.id).update(state=State.PAUSED, check_at=None)
    shown = manage("executions", "list", terminal=True).out.splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[1].startswith(str(run.id)[:23]) and "ops/nightly" in shown[1] and "Paused" in shown[1]
    assert str(run.id) in manage("executions", "list").out


def test_a_run_is_shown_with_its_history(manage: Manage, run: Execution) -> None:
    record([said(STARTED, run.id, worker="w1"), said(FAILED, run.id, exit_code=3, reason="failed")], utcnow())
    told = manage("executions", "show", str(run.id)[:23], "--json").json
    assert (told["status"], told["exitCode"], told["worker"]) == ("Completed Abnormally", 3, "w1")
    assert [span["status"] for span in told["states"]] == ["Waiting", "Active", "Completed Abnormally"]
    assert told["why"]["causes"][0]["code"] == "ended"
    shown = manage("executions", "show", str(run.id)).out
    assert "exitCode" in shown and "Completed Abnormally" in shown


def test_the_beginning_of_several_ids_is_not_enough(manage: Manage, new_job: Making) -> None:
    ids = [
        str(Execution.objects.get(job_id=new_job(name, schedule="0 2 * * *").id).id) for name in ("a", "b")
    ]
    unclear = manage("executions", "show", ids[0][:13])
    assert unclear.code == 2 and "several" in unclear.err
    short = manage("executions", "show", ids[0][:8])
    assert (short.code == 3 and "ten digits" in short.err) or "10 digits" in short.err


def test_a_run_is_cancelled_once(manage: Manage, run: Execution) -> None:
    assert manage("executions", "cancel", str(run.id)).out == f"{run.id} is cancelled\n"
    again = manage("executions", "cancel", str(run.id))
    assert again.code == 1 and "has ended already" in again.err and again.err.count("\n") == 1


def test_what_has_ended_is_run_again(manage: Manage, run: Execution) -> None:
    early = manage("executions", "retry", str(run.id))
    assert early.code == 1 and "has not ended" in early.err
    record([said(STARTED, run.id), said(FAILED, run.id)], utcnow())
    (made,) = manage("executions", "retry", str(run.id), "--json").json["results"]
    new = Execution.objects.get(id=made["executionId"])
    assert made["retryOf"] == str(run.id) != made["executionId"]
    assert (new.state, new.scheduled_for) == (State.WAITING, run.scheduled_for)
    assert manage("executions", "retry", str(run.id)).out.endswith(f" is a retry of {run.id}\n")


def test_a_run_is_moved(manage: Manage, run: Execution) -> None:
    at = (utcnow() + timedelta(hours=1)).replace(microsecond=0)
    told = manage("executions", "reschedule", str(run.id), "--at", at.isoformat(), "--json").json
    assert told["movedTo"] == at.isoformat().replace("+00:00", "Z")
    run.refresh_from_db()
    assert run.check_at == at


@pytest.mark.parametrize(
    "words", [("show",), ("logs",), ("cancel",), ("retry",), ("reschedule", "--at", "2999-01-01T00:00:00Z")]
)
def test_a_user_of_another_team_finds_no_such_run(
    manage: Manage, run: Execution, member_of: Callable[..., User], words: tuple[str, ...]
) -> None:
    member_of("otto", "marketing")
    action, *options = words
    assert manage("executions", action, str(run.id), "--user", "otto", *options).code == 3
    assert manage("executions", "list", "--user", "otto", "--json").json["results"] == []
    assert manage("executions", "list", "--owner", "ops", "--user", "otto").code == 3


def test_a_run_that_has_not_begun_has_no_log(manage: Manage, run: Execution) -> None:
    assert manage("executions", "logs", str(run.id)).code == 3
