"""Work that runs elsewhere reports its end: over the real broker, to the recorder, into the row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from access.trail.models import ChangeRecord
from executions import reporting
from executions.claims import Claimed, Claims, Renewal
from executions.recorder import recorder
from executions.run_tokens import read_run_token, run_token
from executions.states import EventType
from executions.store import Store
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.integration.access.routes import rest_routes
from tests.integration.access.test_every_way_in import OF_NO_TEAM
from tests.integration.api.conftest import create, problem_of
from tests.integration.api.test_executions import get, happen
from tests.integration.executions.brokers import purge, use_broker

pytestmark = pytest.mark.django_db(transaction=True)
NORMALLY = {"status": "Completed Normally"}
LEASE = timedelta(seconds=30)
ITS_OWN = {("execution-detail", "get"), ("execution-status", "post")}


@pytest.fixture(autouse=True)
def broker() -> None:
    reporting._published._events.close()
    purge()


def begun(client: APIClient, **fields: Any) -> str:
    identity: str = create(client, schedule="now", **fields)["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1", at=utcnow() - timedelta(minutes=1))
    return identity


def report(client: APIClient, identity: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/executions/{identity}/status", body, format="json")


def record_end(client: APIClient, identity: str) -> dict[str, Any]:
    """The recorder takes what is in its queue; the run then."""
    consumer, deadline = recorder(), monotonic() + 20
    try:
        while (run := get(client, f"/{identity}"))["finishedAt"] is None:
            assert monotonic() < deadline
            consumer.run_once()
    finally:
        consumer.close()
    return dict(run)


def of_run(settings: Settings, identity: str, attempt: int = 1) -> APIClient:
    client = APIClient()
    token = run_token(settings.SECRET_KEY, UUID(identity), attempt)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def test_a_reported_end_is_recorded_and_what_still_runs_is_asked_to_stop(
    member: APIClient, store: Store
) -> None:
    identity = begun(member)
    claims = Claims(store, "w1", LEASE)
    assert claims.claim(UUID(identity), 1) is Claimed.WON
    ended = utcnow() - timedelta(seconds=10)
    answer = report(member, identity, {**NORMALLY, "completedAt": ended.isoformat()})
    assert (answer.status_code, answer.json()) == (202, {"id": identity, "status": "Active"})
    reported = ChangeRecord.objects.get(what="reported")
    assert (reported.who, reported.object_repr) == ("mia", f"run {identity}")
    assert reported.changes == {"status": [None, "Completed Normally"], "attempt": [None, 1]}
    assert get(member, f"/{identity}")["status"] == "Active"  # only the recorder writes it
    assert claims.renew([(UUID(identity), 1)]) == [Renewal.HELD]
    run = record_end(member, identity)
    assert (run["status"], run["reason"]) == ("Completed Normally", "reported")
    assert run["finishedAt"] == ended.isoformat().replace("+00:00", "Z")
    assert claims.renew([(UUID(identity), 1)]) == [Renewal.STOPPED]
    happen(identity, EventType.CANCELLED, worker="w1", reason="cancelled")
    assert get(member, f"/{identity}")["status"] == "Completed Normally"
    assert "Completed Normally" in problem_of(report(member, identity, NORMALLY), 409)["detail"]


def test_a_reported_failure_is_the_end_whatever_retries_there_are(
    member: APIClient, settings: Settings
) -> None:
    identity = begun(member, retries=5)
    body = {"status": "Completed Abnormally", "failureReason": "the warehouse said no"}
    assert report(of_run(settings, identity), identity, body).status_code == 202
    assert not ChangeRecord.objects.filter(what="reported").exists(), "no person said so"
    run = record_end(member, identity)
    assert (run["status"], run["message"]) == ("Completed Abnormally", "the warehouse said no")


def test_the_token_of_a_run_reports_its_attempt_and_reads_the_run_and_nothing_else(
    member: APIClient, settings: Settings
) -> None:
    identity, other = begun(member), begun(member, name="another", retries=1)
    itself = of_run(settings, identity)
    problem_of(report(itself, other, NORMALLY), 404)
    assert get(itself, f"/{identity}") == get(member, f"/{identity}")
    problem_of(itself.get(f"/api/v1/executions/{other}"), 404)
    names = {"execution_id": identity, "job_id": get(itself, f"/{identity}")["jobId"]}
    for route in rest_routes():
        address = route.path.format(**{name: names.get(name, "1") for name in route.takes})
        for method in route.methods:
            if (route.name, method) not in ITS_OWN and route.name not in OF_NO_TEAM:
                problem_of(getattr(itself, method)(address), 401)
    happen(other, EventType.FAILED, worker="w1", exit_code=1)
    assert "Attempt 1" in problem_of(report(of_run(settings, other), other, NORMALLY), 409)["detail"]
    forged = APIClient()
    forged.credentials(HTTP_AUTHORIZATION=f"Bearer {run_token('other', UUID(identity), 1)}")
    problem_of(report(forged, identity, NORMALLY), 401)
    for nonsense in ("", "x", "x_y_z", f"{UUID(identity).hex}_1_", f"{UUID(identity).hex}_1_é"):
        assert read_run_token(settings.SECRET_KEY, f"punctual_run_{nonsense}") is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "status"),
        ({"status": "Cancelled"}, "status"),
        ({**NORMALLY, "completedAt": "2999-01-01T00:00:00Z"}, "completedAt"),
        ({**NORMALLY, "completedAt": "2020-01-01T00:00:00Z"}, "completedAt"),
        ({**NORMALLY, "completedAt": "yesterday"}, "completedAt"),
        ({**NORMALLY, "failureReason": "none"}, "failureReason"),
        ({"status": "Completed Abnormally"}, "failureReason"),
        ({"status": "Completed Abnormally", "failureReason": "\0"}, "failureReason"),
        ({"status": "Completed Abnormally", "failureReason": "x" * 2001}, "failureReason"),
        ({**NORMALLY, "exitCode": 0}, "exitCode"),
    ],
)
def test_an_end_that_cannot_be_is_refused(member: APIClient, body: dict[str, Any], field: str) -> None:
    assert field in problem_of(report(member, begun(member), body), 400)["errors"]


def test_what_has_not_begun_or_is_anothers_has_no_end_to_report(
    member: APIClient, outsider: APIClient
) -> None:
    identity = create(member)["firstExecutionId"]
    assert "not begun" in problem_of(report(member, identity, NORMALLY), 409)["detail"]
    problem_of(report(outsider, identity, NORMALLY), 404)


def test_while_the_broker_is_away_one_is_told_to_come_again(member: APIClient, settings: Settings) -> None:
    identity = begun(member)
    reporting._published._events.close()
    use_broker(settings, "redis://127.0.0.1:1/0")
    answer = report(member, identity, NORMALLY)
    problem_of(answer, 503)
    assert int(answer["Retry-After"]) > 0
