"""Pools over REST, jobs that name them, and for what a run waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import TestCase
from rest_framework.test import APIClient

from executions.models import Execution
from executions.pools import Pools, job_pool, named_pool, team_pool
from executions.presence import PresentWorker, announce
from executions.store import Store, default_store
from jobs.models import Job, Pool
from jobs.pools import all_limits, write_changed
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY
from tests.integration.api.conftest import create, problem_of

pytestmark = pytest.mark.django_db
POOLS = "/api/v1/pools"


def committed(call: Any) -> Any:
    """The answer, when what was to be done after the commit is done."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        return call()


def make(client: APIClient, **fields: Any) -> dict[str, Any]:
    body = {"name": "warehouse", "slots": 2, **fields}
    answer = committed(lambda: client.post(POOLS, body, format="json"))
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def pools(store: Store) -> Pools:
    found = Pools(default_store(), timedelta(0))
    found.write_limits({})
    return found


def test_a_pool_is_made_changed_and_deleted_and_its_limit_holds_at_once(
    root: APIClient, pools: Pools
) -> None:
    made = make(root, description="loads")
    assert made.items() >= {
        "name": "warehouse", "slots": 2, "team": None, "description": "loads",
        "active": 0, "waiting": 0, "exceeded": 0,
    }.items()  # fmt: skip
    assert pools.limits() == {named_pool("warehouse"): 2}
    changed = committed(lambda: root.patch(f"{POOLS}/warehouse", {"slots": 5}, format="json"))
    assert (changed.status_code, changed.json()["slots"], changed.json()["description"]) == (200, 5, "loads")
    assert pools.limits() == {named_pool("warehouse"): 5}
    assert [pool["name"] for pool in root.get(POOLS).json()["results"]] == ["warehouse"]
    assert committed(lambda: root.delete(f"{POOLS}/warehouse")).status_code == 204
    assert pools.limits() == {}
    problem_of(root.get(f"{POOLS}/warehouse"), 404)


def test_what_cannot_be_a_pool_is_refused(root: APIClient, member: APIClient) -> None:
    make(root)
    problem_of(root.post(POOLS, {"name": "warehouse", "slots": 1}, format="json"), 409)
    for body, field in [
        ({"name": "a b", "slots": 1}, "name"),
        ({"name": "x"}, "slots"),
        ({"name": "x", "slots": -1}, "slots"),
        ({"name": "x", "slots": 1, "team": "nobody"}, "team"),
        ({"name": "x", "slots": 1, "size": 3}, "size"),
    ]:
        assert field in problem_of(root.post(POOLS, body, format="json"), 400)["errors"]
    assert "name" in problem_of(root.patch(f"{POOLS}/warehouse", {"name": "b"}, format="json"), 400)["errors"]
    problem_of(member.post(POOLS, {"name": "x", "slots": 1}, format="json"), 403)
    problem_of(member.patch(f"{POOLS}/warehouse", {"slots": 1}, format="json"), 403)
    problem_of(member.delete(f"{POOLS}/warehouse"), 403)


def test_who_has_djangos_permission_may_manage_pools(member: APIClient) -> None:
    permission = Permission.objects.get(codename="add_pool", content_type__app_label="jobs")
    User.objects.get(username="mia").user_permissions.add(permission)
    make(member)


def test_a_pool_of_a_team_is_named_by_no_job_and_seen_by_no_other_team(
    root: APIClient, member: APIClient, outsider: APIClient, pools: Pools
) -> None:
    make(root, name="data", team="data-engineering")
    job = Job.objects.select_related("owner").get(id=create(member)["jobId"])
    assert pools.limits() == {team_pool(job.owner_id): 2}
    problem_of(root.post(POOLS, {"name": "two", "slots": 1, "team": "data-engineering"}, format="json"), 409)
    assert member.get(f"{POOLS}/data").status_code == 200
    problem_of(outsider.get(f"{POOLS}/data"), 404)
    patched = member.patch(f"/api/v1/jobs/{job.id}", {"pool": "data"}, format="json")
    assert "limits the runs of a team" in problem_of(patched, 400)["errors"]["pool"][0]


def test_a_job_names_a_pool_that_there_is_and_keeps_it_from_being_deleted(
    root: APIClient, member: APIClient, pools: Pools
) -> None:
    refused = member.post("/api/v1/jobs", {**BODY, "pool": "warehous"}, format="json")
    assert "There is no pool 'warehous'" in problem_of(refused, 400)["errors"]["pool"][0]
    make(root)
    made = committed(lambda: create(member, pool="warehouse", maxActive=3, queue="etl", priority="high"))
    job = member.get(f"/api/v1/jobs/{made['jobId']}").json()
    assert (job["pool"], job["maxActive"], job["queue"], job["priority"]) == ("warehouse", 3, "etl", "high")
    assert pools.limits() == {named_pool("warehouse"): 2, job_pool(made["jobId"]): 3}
    problem_of(root.delete(f"{POOLS}/warehouse"), 409)
    body = Job.objects.get(id=made["jobId"]).spec.body
    assert (body["pool"], body["max_active"], body["queue"], body["priority"]) == (
        "warehouse",
        3,
        "etl",
        "high",
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "Etl"), ("queue", "maintenance"), ("queue", "a.high"), ("queue", ""), ("queue", "x" * 64),
        ("priority", "urgent"), ("priority", 3), ("pool", "a b"), ("pool", 3),
        ("maxActive", 0), ("maxActive", 10_001), ("maxActive", "2"), ("maxActive", True),
    ],
)  # fmt: skip
def test_nonsense_is_refused_when_a_job_is_saved(member: APIClient, field: str, value: Any) -> None:
    answer = member.post("/api/v1/jobs", {**BODY, field: value}, format="json")
    assert list(problem_of(answer, 400)["errors"]) == [field]


def test_limits_that_were_changed_by_sql_or_lost_are_brought_in_line(root: APIClient, pools: Pools) -> None:
    make(root)
    Pool.objects.update(slots=7)
    assert write_changed(pools, pools.limits() or {}) == 1
    assert pools.limits() == all_limits() == {named_pool("warehouse"): 7}
    assert write_changed(pools, pools.limits() or {}) == 0


def test_a_run_says_that_no_worker_listens_on_its_queue(member: APIClient, pools: Pools) -> None:
    made = create(member, queue="etl")
    run = Execution.objects.get(id=made["firstExecutionId"])
    address = f"/api/v1/executions/{run.id}"
    assert member.get(address).json()["waitsFor"] is None, "it is not due yet"
    Execution.objects.filter(id=run.id).update(queued_at=utcnow())
    assert member.get(address).json()["waitsFor"] == "a worker: none listens on the queue 'etl'"
    announce(default_store(), PresentWorker("w", ["runs"], 8))
    assert member.get(address).json()["waitsFor"] == "a worker: none listens on the queue 'etl'"
    announce(default_store(), PresentWorker("w", ["runs", "etl"], 8))
    assert member.get(address).json()["waitsFor"] is None
