"""Who gets in, and who sees what."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.example_body import BODY
from tests.integration.api.conftest import create, problem_of

pytestmark = pytest.mark.django_db

NOBODY = "0193e4a0-0000-7000-8000-000000000000"
READS = ["jobs/{job}", "executions/{run}", "executions/{run}/events", "executions/{run}/logs"]
WRITES = ["jobs/{job}/run", "executions/{run}/cancel"]


@pytest.mark.parametrize("path", ["jobs", "executions", *(r.format(job=NOBODY, run=NOBODY) for r in READS)])
def test_anonymous_is_asked_for_a_token(anonymous: APIClient, path: str) -> None:
    answer = anonymous.get(f"/api/v1/{path}")
    problem_of(answer, 401)
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("credentials", ["Token nonsense", "Token", "Token a b", "Token a\0b", "Token \xff"])
def test_a_token_that_is_none_does_not_let_in(anonymous: APIClient, credentials: str) -> None:
    anonymous.credentials(HTTP_AUTHORIZATION=credentials)
    answer = anonymous.get("/api/v1/jobs")
    problem_of(answer, 401)
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_the_token_of_a_deactivated_user_does_not_let_in(member: APIClient) -> None:
    User.objects.update(is_active=False)
    problem_of(member.get("/api/v1/jobs"), 401)


def test_what_belongs_to_another_team_is_not_there(
    member: APIClient, outsider: APIClient, root: APIClient
) -> None:
    made = create(member)
    names = {"job": made["jobId"], "run": made["firstExecutionId"]}
    for path in READS:
        problem_of(outsider.get(f"/api/v1/{path.format(**names)}"), 404)
    for path in WRITES:
        problem_of(outsider.post(f"/api/v1/{path.format(**names)}"), 404)
    for client, seen in ((outsider, 0), (member, 1), (root, 1)):
        for path in ("jobs", "executions"):
            for query in ("", "?owner=data-engineering"):
                assert len(client.get(f"/api/v1/{path}{query}").json()["results"]) == seen
        by_job = client.get(f"/api/v1/executions?job={made['jobId']}").json()["results"]
        assert len(by_job) == seen
    assert member.get(f"/api/v1/executions/{names['run']}").json()["status"] == "Waiting"


def test_a_member_of_two_teams_sees_both_in_order_and_one_of_none_sees_nothing(
    root: APIClient, client_of: object
) -> None:
    assert callable(client_of)
    for number in range(6):
        made = create(root, name=f"job-{number}", owner=f"team-{number % 3}")
        root.post(f"/api/v1/jobs/{made['jobId']}/run")
    both = client_of("both", "team-0", "team-2")
    address, seen = "/api/v1/executions?limit=3", []
    while address:
        page = both.get(address).json()
        seen += page["results"]
        address = page["next"]
    assert len(seen) == len({run["id"] for run in seen}) == 8
    assert {run["owner"] for run in seen} == {"team-0", "team-2"}
    assert [run["id"] for run in seen] == sorted((run["id"] for run in seen), reverse=True)
    assert client_of("none").get("/api/v1/executions").json() == {"results": [], "next": None}


def test_a_session_reads_freely_and_writes_with_a_csrf_token(db: None) -> None:
    user = User.objects.create_superuser("root")
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(user)
    assert browser.get("/api/v1/jobs").status_code == 200
    assert "CSRF" in problem_of(browser.post("/api/v1/jobs", BODY, format="json"), 403)["detail"]
    browser.get("/admin/password_change/")  # a page with a form hands out the token
    token = browser.cookies["csrftoken"].value
    answer = browser.post("/api/v1/jobs", BODY, format="json", headers={"X-CSRFToken": token})
    assert answer.status_code == 201, answer.content
