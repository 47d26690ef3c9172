"""Executions over REST: lists, one, its history, its output, cancelling it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from executions import pages
from executions.events import Event
from executions.log_places import log_store
from executions.models import Execution
from executions.states import EventType, State
from executions.transitions import record
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import create, problem_of
from tests.integration.making import make_run

pytestmark = pytest.mark.django_db

KEYS = {
    "id", "jobId", "jobName", "owner", "trigger", "status", "reason", "message", "attempt", "missed",
    "scheduledFor", "movedTo", "dueAt", "queuedAt", "startedAt", "finishedAt", "cancelRequestedAt",
    "exitCode", "worker", "parameters", "waitsFor", "explanation",
    "retryOf", "retries",
}  # fmt: skip


def happen(execution_id: str, kind: EventType, attempt: int = 1, **fields: Any) -> None:
    """Let an event happen to a run, as the recorder and the auditor would record it."""
    at = fields.pop("at", utcnow())
    event = Event(type=kind, execution_id=UUID(execution_id), attempt=attempt, at=at, **fields)
    record([event], at, keep=True)


def get(client: APIClient, path: str) -> Any:
    answer = client.get(f"/api/v1/executions{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_execution_reads_in_camel_case_with_times_in_utc(member: APIClient) -> None:
    made = create(member)
    run = get(member, f"/{made['firstExecutionId']}")
    assert set(run) == KEYS
    assert run["jobId"] == made["jobId"]
    assert (run["jobName"], run["owner"], run["status"]) == ("daily-sales-etl", "data-engineering", "Waiting")
    assert run["scheduledFor"] == made["nextRunAt"]
    assert run["parameters"] == {"execution_date": "{{ ds }}"}
    assert run["startedAt"] is run["finishedAt"] is run["exitCode"] is None


def test_the_list_is_newest_first_and_paged_without_gap_or_repetition(member: APIClient) -> None:
    job = create(member)["jobId"]
    for _ in range(6):
        member.post(f"/api/v1/jobs/{job}/run")
    address, seen = "/api/v1/executions?limit=2", []
    while address:
        page = member.get(address).json()
        seen += page["results"]
        address = page["next"]
    due = [run["scheduledFor"] for run in seen]
    assert len({run["id"] for run in seen}) == len(seen) == 7
    assert due == sorted(due, reverse=True)


def test_a_page_that_just_fills_is_the_last(member: APIClient) -> None:
    create(member)
    page = get(member, "?limit=1")
    assert (len(page["results"]), page["next"]) == (1, None)


def test_the_list_is_filtered_by_job_owner_and_status(root: APIClient) -> None:
    first = create(root, name="one")
    second = create(root, name="two", owner="marketing")
    root.post(f"/api/v1/executions/{second['firstExecutionId']}/cancel")

    def ids(query: str) -> set[str]:
        return {run["id"] for run in get(root, f"?{query}")["results"]}

    cancelled = {second["firstExecutionId"]}
    next_of_second = {run["id"] for run in get(root, f"?job={second['jobId']}")["results"]} - cancelled
    assert ids(f"job={first['jobId']}") == {first["firstExecutionId"]}
    assert ids("owner=marketing") == cancelled | next_of_second
    assert ids("status=Cancelled") == cancelled
    assert ids("status=Waiting") == {first["firstExecutionId"]} | next_of_second
    assert ids("status=Waiting,Cancelled&owner=marketing") == cancelled | next_of_second
    assert ids("owner=nobody") == set()


def test_the_list_is_filtered_by_reason_trigger_and_attempt(root: APIClient) -> None:
    made = create(root, retries=1, schedule="now")
    failed, job = made["firstExecutionId"], made["jobId"]
    asked = root.post(f"/api/v1/jobs/{job}/run").json()["executionId"]
    happen(failed, EventType.STARTED, worker="w1")
    happen(failed, EventType.FAILED, worker="w1", reason="out_of_memory", retryable=True)
    happen(failed, EventType.STARTED, attempt=2, worker="w1")
    happen(failed, EventType.FAILED, attempt=2, worker="w1", reason="timed_out", retryable=False)

    def ids(**query: str) -> set[str]:
        return {run["id"] for run in root.get("/api/v1/executions", query).json()["results"]}

    assert ids(reason="timed_out") == ids(reason="lost,timed_out") == {failed}
    assert ids(reason="out_of_memory") == ids(reason="timed_out", status="Waiting") == set()
    assert ids(trigger="manual") == {asked}
    assert ids(trigger="manual,schedule") == {asked, failed}
    assert (ids(attempt="2"), ids(attempt="1"), ids(attempt="3")) == ({failed}, {asked}, set())
    assert ids(attempt="2", trigger="manual") == set()
    for wrong in ({"reason": "Failed!"}, {"reason": "a,"}, {"trigger": "moon"}, {"attempt": "0"}):
        assert list(problem_of(root.get("/api/v1/executions", wrong), 400)["errors"]) == list(wrong)


@pytest.mark.parametrize("sifted", ["", "&attempt=1"])
def test_the_list_is_ordered_by_the_planned_time_either_way(
    member: APIClient, monkeypatch: pytest.MonkeyPatch, sifted: str
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 2)
    for day in range(1, 6):
        create(member, name=f"job-{day}", schedule={"at": f"2030-05-0{day}T12:00:00Z"})

    def planned(order: str) -> list[str]:
        address, seen = f"/api/v1/executions?limit=2&ordering={order}{sifted}", []
        while address:
            page = member.get(address).json()
            seen += [run["scheduledFor"] for run in page["results"]]
            address = page["next"]
        return seen

    earliest = [f"2030-05-0{day}T12:00:00Z" for day in range(1, 6)]
    assert planned("scheduledFor") == earliest
    assert planned("-scheduledFor") == earliest[::-1]
    assert "ordering" in problem_of(member.get("/api/v1/executions?ordering=startedAt"), 400)["errors"]


def test_the_time_range_is_half_open_to_the_microsecond(member: APIClient) -> None:
    due = datetime(2030, 5, 1, 12, 0, 0, 123_456, tzinfo=UTC)
    create(member, schedule={"at": due.isoformat()})
    one = timedelta(microseconds=1)

    def found(since: datetime, until: datetime) -> bool:
        query = {"from": since.isoformat(), "to": until.isoformat()}
        return bool(member.get("/api/v1/executions", query).json()["results"])

    assert found(due, due + one)
    assert not found(due - timedelta(hours=1), due)
    assert not found(due + one, due + timedelta(hours=1))


def test_the_history_tells_the_events_in_order_and_the_time_in_each_state(member: APIClient) -> None:
    identity = create(member, schedule="now", retries=1, retryDelay="2s")["firstExecutionId"]
    begun = utcnow()
    happen(identity, EventType.QUEUED, at=begun)
    happen(identity, EventType.STARTED, at=begun + timedelta(seconds=1), worker="w1")
    happen(
        identity, EventType.FAILED, at=begun + timedelta(seconds=4), worker="w1", reason="failed", exit_code=3
    )
    happen(identity, EventType.STARTED, 2, at=begun + timedelta(seconds=6), worker="w2")
    happen(identity, EventType.COMPLETED, 2, at=begun + timedelta(seconds=11), worker="w2", exit_code=0)

    history = get(member, f"/{identity}/events")

    assert [(event["type"], event["attempt"]) for event in history["events"]] == [
        ("JOB_QUEUED", 1),
        ("JOB_STARTED", 1),
        ("JOB_FAILED", 1),
        ("JOB_RETRYING", 2),
        ("JOB_STARTED", 2),
        ("JOB_COMPLETED", 2),
    ]
    assert history["events"][2]["exitCode"] == 3
    assert [(span["status"], span["attempt"]) for span in history["states"]] == [
        ("Waiting", 1),
        ("Active", 1),
        ("Waiting", 2),
        ("Active", 2),
        ("Completed Normally", 2),
    ]
    assert history["secondsInState"]["Active"] == pytest.approx(8)
    assert history["secondsInState"]["Waiting"] == pytest.approx(3, abs=2)
    assert history["states"][-1]["to"] is history["states"][-1]["seconds"] is None


@pytest.fixture
def logs(settings: Settings, tmp_path: Path) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path


def write_log(identity: str, attempt: int, data: bytes) -> None:
    writer = log_store().writer(UUID(identity), attempt)
    writer.write(data)
    writer.close()


def test_logs_are_plain_text_of_the_latest_attempt_that_has_begun(member: APIClient, logs: None) -> None:
    identity = create(member, schedule="now", retries=2)["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1")
    write_log(identity, 1, b"first\n\xff\n")
    happen(identity, EventType.FAILED, worker="w1", exit_code=3)

    waiting = member.get(f"/api/v1/executions/{identity}/logs", headers={"Accept": "text/plain"})

    assert waiting["Content-Type"] == "text/plain; charset=utf-8"
    assert waiting["Punctual-Attempt"] == "1"
    assert waiting.getvalue() == b"first\n\xff\n"
    happen(identity, EventType.STARTED, 2, worker="w1")
    silent = member.get(f"/api/v1/executions/{identity}/logs")
    assert (silent.status_code, silent["Punctual-Attempt"], silent.getvalue()) == (200, "2", b"")
    write_log(identity, 2, b"second\n")
    assert member.get(f"/api/v1/executions/{identity}/logs").getvalue() == b"second\n"
    assert member.get(f"/api/v1/executions/{identity}/logs?attempt=1").getvalue() == b"first\n\xff\n"
    problem_of(member.get(f"/api/v1/executions/{identity}/logs?attempt=3"), 404)


def test_lines_have_their_times_where_they_are_asked_for(member: APIClient, logs: None) -> None:
    identity = create(member, schedule="now")["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1")
    write_log(identity, 1, b"one\r\xff\ntwo")
    address = f"/api/v1/executions/{identity}/logs"
    stamped = member.get(f"{address}?timestamps=true").getvalue().split(b"\n")
    assert [line.partition(b"Z - ")[2] for line in stamped] == [b"one\r\xff", b"two"]
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z - two", stamped[-1])
    assert member.get(f"{address}?timestamps=false").getvalue() == b"one\r\xff\ntwo"
    assert "timestamps" in problem_of(member.get(f"{address}?timestamps=1"), 400)["errors"]


def test_a_run_that_has_not_started_has_no_log(member: APIClient, logs: None) -> None:
    identity = create(member)["firstExecutionId"]
    assert "has not started" in problem_of(member.get(f"/api/v1/executions/{identity}/logs"), 404)["detail"]


def test_a_log_longer_than_its_limit_says_what_is_left_out(
    member: APIClient, logs: None, settings: Settings
) -> None:
    settings.PUNCTUAL_LOG_LIMIT_BYTES = 8192
    identity = create(member, schedule="now")["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1")
    write_log(identity, 1, b"a" * 4096 + b"b" * 20_000 + b"z" * 100)
    shown = member.get(f"/api/v1/executions/{identity}/logs").getvalue()
    assert b"left out" in shown
    assert shown.startswith(b"a" * 4096)
    assert shown.endswith(b"z" * 100)


def test_a_waiting_run_is_cancelled_at_once_and_once_only(member: APIClient) -> None:
    identity = create(member)["firstExecutionId"]
    answer = member.post(f"/api/v1/executions/{identity}/cancel")
    assert (answer.status_code, answer.json()) == (200, {"id": identity, "status": "Cancelled"})
    run = get(member, f"/{identity}")
    assert (run["status"], run["reason"], run["message"]) == ("Cancelled", "user", "cancelled by mia")
    assert "Cancelled" in problem_of(member.post(f"/api/v1/executions/{identity}/cancel"), 409)["detail"]


def test_a_running_one_is_asked_to_stop(member: APIClient) -> None:
    identity = create(member, schedule="now")["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1")
    answer = member.post(f"/api/v1/executions/{identity}/cancel", {}, format="json")
    assert (answer.status_code, answer.json()) == (202, {"id": identity, "status": "Active"})
    assert get(member, f"/{identity}")["cancelRequestedAt"] is not None


def test_pages_of_a_rare_state_go_on_where_the_last_has_looked(
    root: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 4)
    monkeypatch.setattr(pages, "TIME_S", 0.0)
    now = utcnow()
    runs = [make_run(due=now - timedelta(seconds=age)) for age in range(12)]
    ended = {"state": str(State.CANCELLED), "finished_at": now, "check_at": None}
    Execution.objects.filter(id__in=[runs[7], runs[11]]).update(**ended)
    address, seen, times = "/api/v1/executions?status=Cancelled&limit=2", list[str](), list[str]()
    while address:
        answer = root.get(address)
        seen += [run["id"] for run in answer.json()["results"]]
        times += [answer["Punctual-Looked-Until"]] if answer.has_header("Punctual-Looked-Until") else []
        address = answer.json()["next"]
    assert seen == [str(runs[7]), str(runs[11])]
    assert [instant[:19] for instant in times] == [
        (now - timedelta(seconds=age)).isoformat()[:19] for age in (3, 7, 11)
    ]
