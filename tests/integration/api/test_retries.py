"""A run that has ended is run again, over REST."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from executions.states import EventType
from tests.integration.api.conftest import create, problem_of
from tests.integration.api.test_executions import get, happen

pytestmark = pytest.mark.django_db(transaction=True)


def ended(client: APIClient, run: str) -> str:
    happen(run, EventType.STARTED, worker="w1")
    happen(run, EventType.FAILED, worker="w1", exit_code=3, retryable=False)
    return f"/api/v1/executions/{run}/retry"


def test_an_ended_run_is_run_again_with_what_was_mended_and_its_own_parameters(member: APIClient) -> None:
    job = create(member)["jobId"]
    asked = member.post(f"/api/v1/jobs/{job}/run", {"parameters": {"day": "monday"}}, format="json")
    first = asked.json()["executionId"]
    retry = ended(member, first)
    member.patch(f"/api/v1/jobs/{job}", {"parameters": {"day": "any", "mended": True}}, format="json")
    answer = member.post(retry)
    made = answer.json()
    assert (answer.status_code, made["retryOf"]) == (201, first)
    assert answer["Location"] == f"/api/v1/executions/{made['executionId']}"
    again, before = get(member, f"/{made['executionId']}"), get(member, f"/{first}")
    assert again["scheduledFor"] == before["scheduledFor"]
    assert again["parameters"] == {"day": "monday", "mended": True}
    assert (again["status"], again["trigger"]) == ("Waiting", "manual")
    assert (first in again["message"], "mia" in again["message"]) == (True, True)
    assert (again["retryOf"], again["retries"]) == (first, [])
    assert (before["retryOf"], before["retries"]) == (None, [made["executionId"]])
    changes = member.get(f"/api/v1/jobs/{job}/changes").json()["results"]
    (change,) = (change for change in changes if change["action"] == "retried")
    assert (change["who"], change["fields"]["retry"]["after"]) == ("mia", made["executionId"])
    assert again["dueAt"] > again["scheduledFor"]
    assert before["status"] == "Completed Abnormally"
    assert member.post(retry).json()["executionId"] not in {first, made["executionId"]}


def test_a_key_makes_one_retry(member: APIClient) -> None:
    job = create(member)["jobId"]
    runs = [member.post(f"/api/v1/jobs/{job}/run").json()["executionId"] for _ in range(2)]
    first, other = (ended(member, run) for run in runs)
    answers = [member.post(first, headers={"Idempotency-Key": "again-1"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0]["Location"] == answers[1]["Location"]
    assert get(member, f"/{runs[0]}")["retries"] == [answers[0].json()["executionId"]]
    assert "another" in problem_of(member.post(other, headers={"Idempotency-Key": "again-1"}), 409)["detail"]
    assert member.post(first, headers={"Idempotency-Key": "again-2"}).status_code == 201
    assert list(problem_of(member.post(first, headers={"Idempotency-Key": "a b"}), 400)["errors"]) == [
        "Idempotency-Key"
    ]


def test_what_has_not_ended_or_is_not_ones_own_is_not_run_again(
    member: APIClient, outsider: APIClient
) -> None:
    made = create(member, schedule="now")
    retry = f"/api/v1/executions/{made['firstExecutionId']}/retry"
    assert "Waiting" in problem_of(member.post(retry), 409)["detail"]
    ended(member, made["firstExecutionId"])
    problem_of(outsider.post(retry), 404)
    assert "fields" in str(problem_of(member.post(retry, {"now": True}, format="json"), 400)["errors"])
    member.delete(f"/api/v1/jobs/{made['jobId']}")
    assert "deleted" in problem_of(member.post(retry), 409)["detail"]
