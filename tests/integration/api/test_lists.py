"""Lists: filters, orders, some of the fields, page by page."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.integration.api.conftest import create, problem_of

NAMES = ["b", "a", "d", "c"]


@pytest.fixture
def jobs(root: APIClient, member: APIClient, outsider: APIClient) -> dict[str, str]:
    """Ids by name: three of one team, one of another."""
    root.post("/api/v1/pools", {"name": "etl", "slots": 3}, format="json")
    made = {name: create(member, name=name)["jobId"] for name in "abd"}
    more = {
        "type": "SQL",
        "command": "select 1",
        "queue": "etl",
        "pool": "etl",
        "description": "The SALES",
    }
    made["c"] = create(outsider, name="c", owner="marketing", priority="high", **more)["jobId"]
    member.post(f"/api/v1/jobs/{made['b']}/pause")
    return made


def listed(client: APIClient, query: str, path: str = "jobs") -> list[dict[str, Any]]:
    """All results, page by page."""
    found, address = [], f"/api/v1/{path}?{query}"
    while address:
        answer = client.get(address)
        assert answer.status_code == 200, answer.content
        found += answer.json()["results"]
        address = answer.json()["next"]
    return found


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("owner=marketing", "c"),
        ("name=a", "a"),
        ("type=SQL", "c"),
        ("status=paused", "b"),
        ("status=active", "acd"),
        ("queue=etl", "c"),
        ("priority=high", "c"),
        ("pool=etl", "c"),
        ("task=none", ""),
        ("search=sales", "c"),
        ("search=sales&status=paused", ""),
    ],
)
def test_jobs_are_narrowed(root: APIClient, jobs: dict[str, str], query: str, names: str) -> None:
    assert sorted(job["name"] for job in listed(root, query)) == list(names)


def test_a_member_sees_those_of_his_team_whatever_he_filters_by(
    member: APIClient, jobs: dict[str, str]
) -> None:
    assert listed(member, "owner=marketing") == []
    assert listed(member, "pool=etl") == []


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize(
    ("order", "names"), [("name", "abcd"), ("-name", "dcba"), ("createdAt", "abdc"), ("-createdAt", "cdba")]
)
def test_an_order_holds_from_page_to_page(
    root: APIClient, jobs: dict[str, str], order: str, names: str, limit: int
) -> None:
    found = listed(root, f"ordering={order}&limit={limit}&fields=name")
    assert found == [{"name": name} for name in names]


@pytest.mark.parametrize("path", ["jobs", "executions", "pools"])
def test_only_the_fields_that_are_asked_for_are_there(
    root: APIClient, jobs: dict[str, str], path: str
) -> None:
    field = "name" if path == "pools" else "id"
    found = listed(root, f"fields={field}&limit=1", path)
    assert found
    assert all(list(result) == [field] for result in found)


def test_pools_come_page_by_page(root: APIClient) -> None:
    for name in ("b", "a", "c"):
        root.post("/api/v1/pools", {"name": name, "slots": 1}, format="json")
    assert [pool["name"] for pool in listed(root, "limit=2", "pools")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("type=Ruby", "type"),
        ("status=", "status"),
        ("search=", "search"),
        ("ordering=owner", "ordering"),
        ("fields=id,secret", "fields"),
        ("fields=", "fields"),
        ("cursor=x", "cursor"),
        ("ordering=createdAt&cursor=AAAAAAAAAAAAAAAAAAAAAA", "cursor"),
        ("sort=name", "sort"),
    ],
)
def test_what_is_no_filter_is_refused_by_name(root: APIClient, query: str, field: str) -> None:
    assert list(problem_of(root.get(f"/api/v1/jobs?{query}"), 400)["errors"]) == [field]
