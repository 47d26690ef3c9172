"""Jobs over REST: changing, pausing, resuming, deleting; moving a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from executions.api.presentation import time_text
from executions.models import Execution
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import create, problem_of

pytestmark = pytest.mark.django_db(transaction=True)


def send(client: APIClient, method: str, path: str, body: Any = None) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", body, format="json")


def test_a_patch_changes_what_it_names_and_the_run_that_waits(root: APIClient) -> None:
    made = create(root)
    answer = send(root, "patch", f"jobs/{made['jobId']}", {"command": "python new.py", "retries": 7})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["command"], body["retries"], body["timeout"]) == ("python new.py", 7, "1h")
    assert body["nextRunAt"] == made["nextRunAt"]
    run = Execution.objects.get(id=made["firstExecutionId"])
    assert run.spec.body["command"] == "python new.py"


def test_a_new_schedule_shows_its_next_run(root: APIClient) -> None:
    made = create(root)
    body = send(root, "patch", f"jobs/{made['jobId']}", {"schedule": "30 3 * * *"}).json()
    assert body["schedule"]["cron"] == "30 3 * * *"
    assert body["nextRunAt"].endswith("T03:30:00Z")


def test_an_empty_patch_changes_nothing(root: APIClient) -> None:
    made = create(root)
    before = send(root, "get", f"jobs/{made['jobId']}").json()
    assert send(root, "patch", f"jobs/{made['jobId']}", {}).json() == before


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"colour": "red"}, "colour"),
        ({"schedule": "61 * * * *"}, "schedule"),
        ({"schedule": {"cron": "0 0 * * *", "end": "2020-01-01T00:00:00Z"}}, "schedule"),
        ({"retries": -1}, "retries"),
        ({"command": ""}, "command"),
        ({"type": "Container", "image": ""}, "image"),
        ({"overlap": "sometimes"}, "overlap"),
        ({"misfire": {"policy": "all", "most": 3}}, "misfire"),
        ({"jitter": "2d"}, "jitter"),
        ({"owner": None}, "owner"),
    ],
)
def test_a_patch_that_is_wrong_names_the_field_and_changes_nothing(
    root: APIClient, fields: dict[str, Any], name: str
) -> None:
    made = create(root)
    before = send(root, "get", f"jobs/{made['jobId']}").json()
    assert list(problem_of(send(root, "patch", f"jobs/{made['jobId']}", fields), 400)["errors"]) == [name]
    assert send(root, "get", f"jobs/{made['jobId']}").json() == before


def test_a_name_that_is_taken_is_a_conflict(root: APIClient) -> None:
    create(root)
    other = create(root, name="other")
    problem_of(send(root, "patch", f"jobs/{other['jobId']}", {"name": "daily-sales-etl"}), 409)


def test_a_job_is_not_given_to_the_team_of_others(member: APIClient, outsider: APIClient) -> None:
    made = create(member)
    problem_of(send(member, "patch", f"jobs/{made['jobId']}", {"owner": "marketing"}), 400)
    assert Job.objects.get().owner.name == "data-engineering"


def test_pause_and_resume_say_what_the_job_is_now(root: APIClient) -> None:
    made = create(root)
    for _ in range(2):  # twice is once
        body = send(root, "post", f"jobs/{made['jobId']}/pause").json()
        assert (body["pausedAt"] is not None, body["nextRunAt"]) == (True, None)
    assert Execution.objects.get(id=made["firstExecutionId"]).state == "Paused"
    for _ in range(2):
        body = send(root, "post", f"jobs/{made['jobId']}/resume", {"missed": "skip"}).json()
        assert (body["pausedAt"], body["nextRunAt"]) == (None, made["nextRunAt"])


@pytest.mark.parametrize("body", [{"missed": "some"}, {"missed": None}, {"later": True}])
def test_a_resume_that_is_wrong_is_refused(root: APIClient, body: dict[str, Any]) -> None:
    made = create(root)
    problem_of(send(root, "post", f"jobs/{made['jobId']}/resume", body), 400)


def test_a_deleted_job_is_gone_and_its_runs_stay(root: APIClient) -> None:
    made = create(root)
    answer = send(root, "delete", f"jobs/{made['jobId']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for method, path in (("get", ""), ("delete", ""), ("patch", ""), ("post", "/pause"), ("post", "/run")):
        problem_of(send(root, method, f"jobs/{made['jobId']}{path}"), 404)
    assert send(root, "get", "jobs").json()["results"] == []
    run = send(root, "get", f"executions/{made['firstExecutionId']}").json()
    assert (run["status"], run["reason"]) == ("Cancelled", "deleted")
    assert create(root)["jobId"] != made["jobId"]


@pytest.mark.parametrize(
    ("method", "path"), [("patch", ""), ("delete", ""), ("post", "/pause"), ("post", "/resume")]
)
def test_what_belongs_to_others_is_not_there(
    member: APIClient, outsider: APIClient, method: str, path: str
) -> None:
    made = create(member)
    problem_of(send(outsider, method, f"jobs/{made['jobId']}{path}"), 404)


def test_a_run_that_waits_is_moved(root: APIClient) -> None:
    made = create(root)
    at = time_text(utcnow() + timedelta(hours=3))
    answer = send(root, "post", f"executions/{made['firstExecutionId']}/reschedule", {"at": at})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["dueAt"], body["scheduledFor"], body["status"]) == (at, made["nextRunAt"], "Waiting")


@pytest.mark.parametrize("body", [{}, {"at": 5}, {"at": "soon"}, {"at": "2027-01-01T00:00"}, {"when": "x"}])
def test_a_move_to_no_time_is_refused(root: APIClient, body: dict[str, Any]) -> None:
    made = create(root)
    problem_of(send(root, "post", f"executions/{made['firstExecutionId']}/reschedule", body), 400)


def test_what_does_not_wait_cannot_be_moved(root: APIClient, outsider: APIClient) -> None:
    made = create(root)
    path, body = f"executions/{made['firstExecutionId']}/reschedule", {"at": "2027-01-01T00:00:00Z"}
    problem_of(send(outsider, "post", path, body), 404)
    problem_of(send(root, "post", f"executions/{uuid4()}/reschedule", body), 404)
    send(root, "post", f"jobs/{made['jobId']}/pause")
    problem_of(send(root, "post", path, body), 409)
