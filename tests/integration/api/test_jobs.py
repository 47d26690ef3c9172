"""POST and GET of jobs, and runs on request."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from executions.ids import due_of
from executions.models import Execution
from executions.window import Window
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY
from tests.integration.api.conftest import ClientOf, create, problem_of

pytestmark = pytest.mark.django_db


def test_the_example_of_the_readme_makes_a_job_and_its_first_run(member: APIClient) -> None:
    before = utcnow()
    answer = member.post("/api/v1/jobs", BODY, format="json")

    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {"jobId", "firstExecutionId", "nextRunAt"}
    assert answer["Location"] == f"/api/v1/jobs/{made['jobId']}"
    due = datetime.fromisoformat(made["nextRunAt"])
    assert made["nextRunAt"].endswith("T02:00:00Z")
    assert before < due <= before + timedelta(days=1)
    first = Execution.objects.get(id=made["firstExecutionId"])
    assert (str(first.job_id), first.state, first.scheduled_for) == (made["jobId"], "Waiting", due)


def test_a_job_reads_as_it_was_given(member: APIClient) -> None:
    made = create(member, description="sales", env={"REGION": "EU"}, timeout=None)

    job = member.get(f"/api/v1/jobs/{made['jobId']}").json()

    assert job["createdAt"].endswith("Z")
    del job["createdAt"]
    assert job == {
        "id": made["jobId"],
        "name": "daily-sales-etl",
        "description": "sales",
        "owner": "data-engineering",
        "task": None,
        "type": "Python",
        "command": "python etl/daily_sales_pipeline.py",
        "image": "",
        "env": {"REGION": "EU"},
        "parameters": {"execution_date": "{{ ds }}"},
        "container": {},
        "schedule": {
            "cron": "0 2 * * *",
            "timezone": "UTC",
            "dstGap": "runAfter",
            "dstOverlap": "first",
            "dayMatch": "or",
        },
        "retries": 3,
        "retryDelay": "5m",
        "retryPolicy": {},
        "timeout": None,
        "overlap": "forbid",
        "misfire": {"policy": "latest", "maxAge": None, "maxCount": None},
        "jitter": "0s",
        "queue": "runs",
        "priority": "normal",
        "pool": None,
        "maxActive": None,
        "createdBy": "mia",
        "managedBy": None,
        "pausedAt": None,
        "problem": None,
        "nextRunAt": made["nextRunAt"],
    }


def test_a_job_that_is_due_soon_is_in_the_window_as_soon_as_it_is_committed(
    member: APIClient, window: Window, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        made = create(member, schedule="now")

    shard = Job.objects.get(id=made["jobId"]).shard
    (due,) = window.pop([shard], timedelta(seconds=5), 10)
    assert [str(run.execution_id) for run in due.runs] == [made["firstExecutionId"]]


def test_every_wrong_field_is_named_and_nothing_is_made(member: APIClient) -> None:
    wrong = {
        "name": "",
        "type": "Cobol",
        "schedule": "0 0 31 2 *",
        "retries": -1,
        "retryDelay": "soon",
        "x": 1,
    }

    body = problem_of(member.post("/api/v1/jobs", {**BODY, **wrong}, format="json"), 400)

    assert set(body["errors"]) == set(wrong)
    assert "Cobol" in body["errors"]["type"][0]
    assert not Job.objects.exists()


def test_what_is_missing_is_named(member: APIClient) -> None:
    body = problem_of(member.post("/api/v1/jobs"), 400)
    assert set(body["errors"]) == {"name", "type", "command", "schedule", "owner"}


def test_a_second_job_of_one_name_and_owner_is_a_conflict(member: APIClient) -> None:
    create(member)
    body = problem_of(member.post("/api/v1/jobs", BODY, format="json"), 409)
    assert body["detail"] == "data-engineering already has a job named 'daily-sales-etl'."


def test_a_team_that_is_not_there_is_a_wrong_field(member: APIClient) -> None:
    body = problem_of(member.post("/api/v1/jobs", {**BODY, "owner": "nobody"}, format="json"), 400)
    assert "nobody" in body["errors"]["owner"][0]


def test_whoever_may_add_teams_makes_one_by_naming_it(root: APIClient) -> None:
    create(root, owner="a-new-team")
    assert Job.objects.get().owner.name == "a-new-team"


def test_whoever_has_a_team_made_is_in_it(client_of: ClientOf) -> None:
    maker = client_of("ada")
    User.objects.get(username="ada").user_permissions.add(Permission.objects.get(codename="add_group"))
    made = create(maker, owner="a-new-team")
    assert maker.get(f"/api/v1/jobs/{made['jobId']}").status_code == 200
    assert maker.post(f"/api/v1/jobs/{made['jobId']}/run").status_code == 201
    create(maker, owner="a-new-team", name="the second")


def test_whoever_may_add_teams_is_not_in_those_that_are_there(client_of: ClientOf, member: APIClient) -> None:
    other = client_of("ada")
    User.objects.get(username="ada").user_permissions.add(Permission.objects.get(codename="add_group"))
    problem_of(other.post("/api/v1/jobs", BODY, format="json"), 400)
    assert not Job.objects.exists()


def test_a_page_of_large_jobs_is_short_and_the_next_goes_on(member: APIClient) -> None:
    made = {create(member, name=f"job-{n}", command="x" * 90_000)["jobId"] for n in range(14)}
    address, seen, pages = "/api/v1/jobs", [], 0
    while address:
        answer = member.get(address)
        assert len(answer.content) < 1_100_000
        seen += [job["id"] for job in answer.json()["results"]]
        address, pages = answer.json()["next"], pages + 1
    assert (len(seen), set(seen), pages) == (14, made, 2)


@pytest.mark.parametrize(("field", "length"), [("owner", 151), ("image", 501), ("name", 201)])
def test_a_text_longer_than_its_column_is_a_wrong_field(root: APIClient, field: str, length: int) -> None:
    body = problem_of(root.post("/api/v1/jobs", {**BODY, field: "x" * length}, format="json"), 400)
    assert set(body["errors"]) == {field}


def test_the_list_is_paged_by_cursor_without_gap_or_repetition(member: APIClient) -> None:
    made = {create(member, name=f"job-{number}")["jobId"] for number in range(7)}
    address, seen = "/api/v1/jobs?limit=3", []
    while address:
        page = member.get(address).json()
        assert len(page["results"]) <= 3
        seen += [job["id"] for job in page["results"]]
        address = page["next"]
    assert len(seen) == 7
    assert set(seen) == made


def test_the_list_is_filtered_by_owner_and_name(root: APIClient) -> None:
    create(root, name="a")
    create(root, name="b")
    create(root, name="a", owner="marketing")

    def names(query: str) -> set[tuple[str, str]]:
        found = root.get(f"/api/v1/jobs?{query}").json()["results"]
        return {(job["owner"], job["name"]) for job in found}

    assert names("name=a") == {("data-engineering", "a"), ("marketing", "a")}
    assert names("owner=marketing") == {("marketing", "a")}
    assert names("owner=data-engineering&name=b") == {("data-engineering", "b")}
    assert names("owner=nobody") == set()


def test_an_instant_long_past_is_refused_with_the_way_out(member: APIClient) -> None:
    body = problem_of(
        member.post("/api/v1/jobs", {**BODY, "schedule": {"at": "2020-01-01T01:00:00+01:00"}}, format="json"),
        400,
    )
    (complaint,) = body["errors"]["schedule"]
    assert "2020-01-01T00:00:00Z is more than an hour in the past" in complaint
    assert '"now"' in complaint
    assert not Job.objects.exists()


@pytest.mark.parametrize("misfire", ["none", {"policy": "all", "maxAge": "1m"}])
def test_an_instant_past_that_the_misfire_policy_would_skip_is_refused(
    member: APIClient, misfire: Any
) -> None:
    at = (utcnow() - timedelta(minutes=30)).replace(microsecond=0)
    wanted = {**BODY, "schedule": {"at": at.isoformat()}}
    body = problem_of(member.post("/api/v1/jobs", {**wanted, "misfire": misfire}, format="json"), 400)
    (complaint,) = body["errors"]["schedule"]
    assert "has passed, and misfire lets no run start that late" in complaint
    assert member.post("/api/v1/jobs", {**wanted, "misfire": "latest"}, format="json").status_code == 201


def test_an_instant_just_past_is_due_at_once(member: APIClient) -> None:
    due = (utcnow() - timedelta(minutes=30)).replace(microsecond=0)
    made = create(member, schedule={"at": due.isoformat()})
    assert datetime.fromisoformat(made["nextRunAt"]) == due


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"},
        {"command": "{{ " + "9" * 5000 + " }}"},
        {"parameters": {"a": [{"b": "{{ " + "not " * 15_000 + "1 }}"}]}},
        {"env": {"A": "{{ " + "[" * 300 + "]" * 300 + " }}"}},
        {"command": "{% if 1 %}" * 3000 + "{% endif %}" * 3000},
    ],
)
def test_a_template_that_cannot_be_read_is_a_wrong_field(member: APIClient, changes: dict[str, Any]) -> None:
    body = problem_of(member.post("/api/v1/jobs", {**BODY, **changes}, format="json"), 400)
    assert list(body["errors"]) == list(changes)
    assert "Not a template" in next(iter(body["errors"].values()))[0]


def test_next_run_is_none_once_nothing_waits(member: APIClient) -> None:
    made = create(member, schedule="now")
    member.post(f"/api/v1/executions/{made['firstExecutionId']}/cancel")
    assert member.get(f"/api/v1/jobs/{made['jobId']}").json()["nextRunAt"] is None


def test_a_run_on_request_is_beside_the_schedule(member: APIClient) -> None:
    made = create(member)
    before = utcnow()

    answer = member.post(f"/api/v1/jobs/{made['jobId']}/run", {}, format="json")

    assert answer.status_code == 201
    identity = answer.json()["executionId"]
    assert answer["Location"] == f"/api/v1/executions/{identity}"
    run = Execution.objects.get(id=identity)
    assert (run.trigger, run.state) == ("manual", "Waiting")
    assert before - timedelta(seconds=1) < due_of(run.id)
    assert member.get(f"/api/v1/jobs/{made['jobId']}").json()["nextRunAt"] == made["nextRunAt"]


def test_a_run_takes_no_fields_that_would_be_ignored(member: APIClient) -> None:
    made = create(member)
    answer = member.post(f"/api/v1/jobs/{made['jobId']}/run", {"when": "later"}, format="json")
    assert set(problem_of(answer, 400)["errors"]) == {"when"}


def test_a_retry_policy_is_kept_in_its_normal_form_and_follows_to_the_runs(member: APIClient) -> None:
    given = {"backoff": "exponential", "maxDelay": 3600, "jitter": 0.5, "exitCodes": [75, 2, 75], "factor": 2}
    made = create(member, retries=4, retryPolicy=given)
    wanted = {"backoff": "exponential", "maxDelay": "1h", "jitter": 0.5, "exitCodes": [2, 75]}
    address = f"/api/v1/jobs/{made['jobId']}"
    assert member.get(address).json()["retryPolicy"] == wanted
    assert Job.objects.get(id=made["jobId"]).spec.body["retry"] == wanted
    assert member.patch(address, {"retries": 5}, format="json").json()["retryPolicy"] == wanted
    answer = member.patch(address, {"retryPolicy": {"reasons": ["timed_out"]}}, format="json")
    assert answer.json()["retryPolicy"] == {"reasons": ["timed_out"]}
    assert member.patch(address, {"retryPolicy": None}, format="json").json()["retryPolicy"] == {}


def test_what_is_wrong_in_a_retry_policy_is_told_by_its_path(member: APIClient) -> None:
    given = {"jitter": 2, "reasons": ["lost"], "more": 1}
    answer = member.post("/api/v1/jobs", {**BODY, "retryPolicy": given}, format="json")
    errors = problem_of(answer, 400)["errors"]
    assert set(errors) == {"retryPolicy.jitter", "retryPolicy.reasons.0", "retryPolicy.more"}
