"""Two editors, and requests that are made twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from executions.models import Execution
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY
from tests.integration.api.conftest import create, problem_of

POOL = {"name": "etl", "slots": 3}
TASK = {"name": "report", "type": "Script", "command": "true"}


@pytest.fixture
def job(member: APIClient) -> str:
    return f"/api/v1/jobs/{create(member)['jobId']}"


@pytest.fixture
def pool(root: APIClient) -> str:
    assert root.post("/api/v1/pools", POOL, format="json").status_code == 201
    return "/api/v1/pools/etl"


def change(client: APIClient, path: str, tag: str | None, **fields: Any) -> Any:
    headers = {} if tag is None else {"If-Match": tag}
    return client.patch(path, fields, format="json", headers=headers)


def test_of_two_editors_the_second_is_told_and_loses_nothing(member: APIClient, job: str) -> None:
    seen = member.get(job)["ETag"]
    first = change(member, job, seen, description="by one")
    assert first.status_code == 200
    assert "read it again" in problem_of(change(member, job, seen, description="by two"), 412)["detail"]
    assert member.get(job).json()["description"] == "by one"
    assert change(member, job, first["ETag"], description="by two").status_code == 200


def test_a_tag_is_that_of_what_can_be_changed_not_of_how_it_stands(member: APIClient, job: str) -> None:
    seen = member.get(job)["ETag"]
    member.post(f"{job}/pause")
    assert member.get(job)["ETag"] == seen
    assert change(member, job, seen, retries=5)["ETag"] != seen


@pytest.mark.parametrize("tag", [None, "*", '"x", "y", {}'])
def test_a_change_is_made_where_a_tag_matches_or_none_is_asked_for(
    member: APIClient, job: str, tag: str | None
) -> None:
    known = member.get(job)["ETag"]
    assert change(member, job, tag and tag.replace("{}", known), retries=5).status_code == 200


@pytest.mark.parametrize("tag", ["x", '"x', "", '"x" "y"', "*,*"])
def test_what_is_no_tag_is_refused_by_name(member: APIClient, job: str, tag: str) -> None:
    assert list(problem_of(change(member, job, tag, retries=5), 400)["errors"]) == ["If-Match"]


def test_pools_and_tasks_have_tags_too(root: APIClient, pool: str) -> None:
    made = root.post("/api/v1/tasks", TASK, format="json", headers={"Idempotency-Key": "task"})
    assert (
        root.post("/api/v1/tasks", TASK, format="json", headers={"Idempotency-Key": "task"}).status_code
        == 200
    )
    for path in (pool, made["Location"]):
        seen = root.get(path)["ETag"]
        assert change(root, path, seen, description="by one").status_code == 200
        problem_of(change(root, path, seen, description="by two"), 412)
        assert root.get(path).json()["description"] == "by one"


def keyed(client: APIClient, path: str, body: dict[str, Any], key: str) -> Any:
    return client.post(path, body, format="json", headers={"Idempotency-Key": key})


def test_a_job_is_made_once_for_a_key(member: APIClient) -> None:
    first = keyed(member, "/api/v1/jobs", BODY, "deploy-1")
    again = keyed(member, "/api/v1/jobs", BODY, "deploy-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again["Location"] == first["Location"]
    assert Job.objects.count() == Execution.objects.count() == 1


def test_a_key_that_asked_for_something_else_is_refused(member: APIClient) -> None:
    keyed(member, "/api/v1/jobs", BODY, "deploy-1")
    answer = keyed(member, "/api/v1/jobs", {**BODY, "name": "other"}, "deploy-1")
    assert "'deploy-1'" in problem_of(answer, 409)["detail"]
    assert Job.objects.count() == 1


def test_what_was_refused_may_be_mended_with_the_same_key(member: APIClient) -> None:
    problem_of(keyed(member, "/api/v1/jobs", {**BODY, "retries": -1}, "deploy-1"), 400)
    problem_of(keyed(member, "/api/v1/jobs", {**BODY, "pool": "none"}, "deploy-1"), 400)
    assert keyed(member, "/api/v1/jobs", BODY, "deploy-1").status_code == 201


def test_a_key_is_its_users_own(member: APIClient, root: APIClient) -> None:
    keyed(member, "/api/v1/jobs", BODY, "deploy-1")
    assert keyed(root, "/api/v1/jobs", {**BODY, "name": "other"}, "deploy-1").status_code == 201


def test_pools_and_backfills_take_keys_too(root: APIClient, member: APIClient, job: str) -> None:
    assert keyed(root, "/api/v1/pools", POOL, "pool").status_code == 201
    assert keyed(root, "/api/v1/pools", POOL, "pool").json()["name"] == "etl"
    now = utcnow()
    span = {"from": (now - timedelta(days=3)).isoformat(), "to": now.isoformat()}
    first = keyed(member, f"{job}/backfill", span, "backfill")
    again = keyed(member, f"{job}/backfill", span, "backfill")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_what_is_no_key_is_refused_by_name(member: APIClient, key: str) -> None:
    assert list(problem_of(keyed(member, "/api/v1/jobs", BODY, key), 400)["errors"]) == ["Idempotency-Key"]
