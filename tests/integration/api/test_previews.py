"""What a schedule will do, over REST, before it does."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from executions.transitions import record
from jobs.models import Job
from jobs.previews import preview_job, preview_schedule
from jobs.schedules import parse_schedule
from scheduler_project.kernel.clock import utcnow
from scheduler_project.standalone.options import BASE_DIR
from tests.example_body import BODY
from tests.integration.api.conftest import create, problem_of
from tests.integration.jobs.chain import new_job, run_to_end, waiting_run
from tests.integration.making import COMPLETED, STARTED, said

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/schedules/preview"
BERLIN = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
MINUTE = timedelta(minutes=1)


def ask(client: APIClient, **body: Any) -> dict[str, Any]:
    answer = client.post(ADDRESS, body, format="json")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    assert set(found) == {"fires", "description", "warnings"}
    return found


def test_a_schedule_that_is_not_saved_shows_its_fires_its_sentence_and_its_warnings(
    member: APIClient,
) -> None:
    found = ask(member, schedule=BERLIN, after="2027-03-27T00:00:00Z", count=5)

    assert found["fires"] == [
        "2027-03-27T01:30:00Z",
        "2027-03-28T01:00:00Z",
        "2027-03-29T00:30:00Z",
        "2027-03-30T00:30:00Z",
        "2027-03-31T00:30:00Z",
    ]
    assert found["description"] == "At 02:30 (Europe/Berlin)"
    gap, overlap = found["warnings"]
    assert "02:30 does not exist, and it runs at 03:00" in gap
    assert "02:30 comes twice, and it runs the first time only" in overlap
    assert Job.objects.count() == 0


def test_the_example_of_the_document_is_what_is_answered(member: APIClient) -> None:
    text = (BASE_DIR / "docs/schedules.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## Look before you save")
    request, answer = re.findall(r"^    \{.*?\}$", section, re.MULTILINE | re.DOTALL)[:2]
    assert ask(member, **json.loads(request)) == json.loads(answer)


@pytest.mark.parametrize(
    ("fields", "second"),
    [
        ({"dstGap": "skip"}, "2027-03-29T00:30:00Z"),
        ({"dstGap": "runAfter"}, "2027-03-28T01:00:00Z"),
    ],
)
def test_the_policies_of_the_schedule_count(member: APIClient, fields: dict[str, str], second: str) -> None:
    found = ask(member, schedule={**BERLIN, **fields}, after="2027-03-27T00:00:00Z", count=2)
    assert found["fires"] == ["2027-03-27T01:30:00Z", second]


def test_without_a_count_and_an_instant_it_is_ten_from_now(member: APIClient) -> None:
    before = utcnow()
    found = ask(member, schedule={"every": "1m"})
    fires = [datetime.fromisoformat(fire) for fire in found["fires"]]
    assert len(fires) == 10
    assert before + MINUTE <= fires[0] <= utcnow() + MINUTE


@pytest.mark.parametrize(
    ("schedule", "fires", "warnings"),
    [
        ({"at": "2027-01-02T00:00:00Z"}, ["2027-01-02T00:00:00Z"], []),
        (
            {"at": "2026-12-31T23:30:00Z"},
            ["2026-12-31T23:30:00Z"],
            ["This instant is past: the run is due at once."],
        ),
        ({"after": "5m"}, ["2027-01-01T00:05:00Z"], []),
        ("now", ["2027-01-01T00:00:00Z"], []),
        (
            {"cron": "0 0 * * *", "end": "2027-01-03T00:00:00Z"},
            ["2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"],
            ["It fires 2 more times, and then never again."],
        ),
        ({"cron": "0 0 * * *", "end": "2026-01-03T00:00:00Z"}, [], ["It does not fire any more."]),
    ],
)
def test_each_kind_of_schedule_has_its_fires(
    member: APIClient, schedule: Any, fires: list[str], warnings: list[str]
) -> None:
    found = ask(member, schedule=schedule, after="2027-01-01T00:00:00Z")
    assert (found["fires"], found["warnings"]) == (fires, warnings)


def test_a_preview_says_what_a_job_would_be_refused_for(member: APIClient) -> None:
    schedule = {"at": (utcnow() - timedelta(hours=2)).isoformat()}
    (warning,) = ask(member, schedule=schedule)["warnings"]
    refused = problem_of(member.post("/api/v1/jobs", {**BODY, "schedule": schedule}, format="json"), 400)
    assert warning == f"A job with this schedule is refused: {refused['errors']['schedule'][0]}"


def test_a_change_of_the_clock_is_told_as_far_as_the_preview_reaches_and_not_past_its_end(
    member: APIClient,
) -> None:
    sundays = {"cron": "30 2 28 3 SUN", "timezone": "Europe/Berlin", "dayMatch": "and"}
    far = ask(member, schedule=sundays, after="2027-04-01T00:00:00Z", count=2)
    assert far["fires"] == ["2032-03-28T01:00:00Z", "2038-03-28T01:00:00Z"]
    assert any("On 2032-03-28" in warning for warning in far["warnings"])
    ended = ask(member, schedule={**BERLIN, "end": "2027-02-01T00:00:00Z"}, after="2027-01-01T00:00:00Z")
    assert not any("clock" in warning for warning in ended["warnings"])


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"schedule"}),
        ({"schedule": "61 * * * *"}, {"schedule"}),
        ({"schedule": "0 0 31 2 *"}, {"schedule"}),
        ({"schedule": {"cron": "0 2 * * *", "tz": "UTC"}}, {"schedule"}),
        ({"schedule": "now", "count": 0}, {"count"}),
        ({"schedule": "now", "count": 501}, {"count"}),
        ({"schedule": "now", "count": True}, {"count"}),
        ({"schedule": "now", "count": "5"}, {"count"}),
        ({"schedule": "now", "after": "2027-01-01T00:00:00"}, {"after"}),
        ({"schedule": "now", "after": 5}, {"after"}),
        ({"schedule": "now", "job": "x"}, {"job"}),
        ({"schedule": "61 * * * *", "count": 0, "until": 1}, {"schedule", "count", "until"}),
    ],
)
def test_what_is_wrong_is_named(member: APIClient, body: dict[str, Any], wrong: set[str]) -> None:
    problem = problem_of(member.post(ADDRESS, body, format="json"), 400)
    assert set(problem["errors"]) == wrong


def test_a_job_shows_the_fires_that_follow(member: APIClient) -> None:
    made = create(member, schedule="0 2 * * *")
    address = f"/api/v1/jobs/{made['jobId']}/preview"

    found = member.get(address, {"count": 20}).json()

    assert len(found["fires"]) == 20
    assert found["fires"][0] == made["nextRunAt"]
    assert found["description"] == "At 02:00 (UTC)"
    assert found["warnings"] == []
    later = member.get(address, {"after": found["fires"][3], "count": 1}).json()
    assert later["fires"] == [found["fires"][4]]


@pytest.mark.parametrize(
    "query", [{"count": "0"}, {"count": "501"}, {"count": "x"}, {"after": "x"}, {"n": "1"}]
)
def test_a_query_of_a_preview_is_checked(member: APIClient, query: dict[str, str]) -> None:
    made = create(member)
    problem = problem_of(member.get(f"/api/v1/jobs/{made['jobId']}/preview", query), 400)
    assert set(problem["errors"]) == set(query)


def test_another_teams_job_is_not_there(member: APIClient, outsider: APIClient, anonymous: APIClient) -> None:
    made = create(member)
    address = f"/api/v1/jobs/{made['jobId']}/preview"
    problem_of(outsider.get(address), 404)
    problem_of(outsider.post(ADDRESS, {"schedule": "now", "job": made["jobId"]}, format="json"), 404)
    problem_of(anonymous.get(address), 401)
    problem_of(anonymous.post(ADDRESS, {"schedule": "now"}, format="json"), 401)


def test_what_of_the_job_moves_its_runs_is_told(member: APIClient) -> None:
    job_id = create(member, jitter="1h")["jobId"]
    address = f"/api/v1/jobs/{job_id}/preview"
    (jitter,) = member.get(address).json()["warnings"]
    assert jitter.startswith("Each run of this job starts ")
    assert jitter.endswith(" after its planned time (jitter 1h).")
    Job.objects.filter(id=job_id).update(paused_at=utcnow(), jitter=timedelta(0))
    assert member.get(address).json()["warnings"] == [
        "The job is paused: none of these will run before it is resumed."
    ]


def finished(job: Job, length: timedelta) -> None:
    """The waiting run of ``job`` ends now, having taken ``length``."""
    run, now = waiting_run(job).id, utcnow()
    record([said(STARTED, run, at=now - length)], now)
    record([said(COMPLETED, run, at=now, started_at=now - length, exit_code=0)], now)


def test_more_often_than_its_runs_usually_take_is_a_warning(member: APIClient) -> None:
    job_id = create(member, schedule={"every": "1m"})["jobId"]
    job = Job.objects.get(id=UUID(job_id))
    assert member.get(f"/api/v1/jobs/{job_id}/preview").json()["warnings"] == []
    for minutes in (1, 3, 30):
        finished(job, minutes * MINUTE)

    (warning,) = member.get(f"/api/v1/jobs/{job_id}/preview", {"count": 1}).json()["warnings"]
    assert warning == (
        "A run usually takes 3m, and fires are as little as 1m apart: "
        "what is due while a run goes on is skipped (overlap forbid)."
    )

    assert ask(member, schedule={"every": "2m"})["warnings"] == []
    (warning,) = ask(member, schedule={"every": "2m"}, job=job_id)["warnings"]
    assert "as little as 2m apart" in warning
    assert ask(member, schedule={"every": "3m"}, job=job_id)["warnings"] == []


@pytest.mark.parametrize(
    ("schedule", "created"),
    [
        (BERLIN, "2027-03-26T12:00:00Z"),
        ({**BERLIN, "dstOverlap": "both"}, "2027-10-29T12:00:00Z"),
        ({"cron": "*/20 2 * * *", "timezone": "Europe/Berlin"}, "2027-10-30T12:00:00Z"),
        ({"cron": "15 2 * * *", "timezone": "Australia/Lord_Howe"}, "2027-10-01T12:00:00Z"),
        ({"cron": "0 0 * * *", "timezone": "Asia/Beirut"}, "2027-03-26T12:00:00Z"),
        ({"cron": "0 0 13 * FRI", "dayMatch": "and"}, "2027-01-01T00:00:00Z"),
        ("*/10 * * * * *", "2027-01-01T00:00:03.5Z"),
        ({"every": "7m"}, "2027-01-01T00:00:03.123Z"),
        ({"every": "1h", "start": "2027-01-02T00:00:00Z"}, "2027-01-01T00:00:00Z"),
        ({"cron": "0 0 * * *", "end": "2027-01-03T00:00:00Z"}, "2027-01-01T00:00:00Z"),
        ({"after": "5m"}, "2027-01-01T00:00:00Z"),
        ({"at": "2026-12-31T23:30:00Z"}, "2027-01-01T00:00:00Z"),
        ("now", "2027-01-01T00:00:00Z"),
    ],
)
def test_a_preview_is_what_is_really_created(store: object, schedule: Any, created: str) -> None:
    """The rows that the chain inserts, run by run, each of which ends before the next is due."""
    begun = datetime.fromisoformat(created).astimezone(UTC)
    expected = preview_schedule(parse_schedule(schedule), begun, 6).fires

    assert run_to_end(new_job(schedule, begun), begun, 6) == expected


@pytest.mark.parametrize("overlap", ["allow", "queue", "replace"])
def test_it_is_so_with_every_rule_of_overlaps_and_with_jitter(store: object, overlap: str) -> None:
    begun = datetime(2027, 3, 26, 12, tzinfo=UTC)
    job = new_job(BERLIN, begun, overlap=overlap, jitter="10m")
    assert run_to_end(job, begun, 6) == preview_job(job, begun, 6).fires
