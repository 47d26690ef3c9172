"""The calendar over REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from executions.tallies import minute_of
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import create, problem_of

pytestmark = pytest.mark.django_db
WEEK = 7 * 24 * 60


def test_each_sees_the_starts_of_his_jobs(root: APIClient, member: APIClient, outsider: APIClient) -> None:
    create(root, schedule="0 2 * * *")
    create(root, schedule="0 2 * * *", name="second", owner="marketing")
    assert [sum(client.get("/api/v1/calendar").json()["starts"]) for client in (root, member, outsider)] == [
        14,
        7,
        7,
    ]
    found = root.get("/api/v1/calendar").json()
    assert (len(found["starts"]), found["jobs"], found["unreadable"]) == (WEEK, 2, 0)
    busy = found["busiest"][0]
    assert busy["starts"] == 2
    minute = root.get("/api/v1/calendar/minute", {"at": busy["minute"]}).json()
    assert [job["jobName"] for job in minute["jobs"]] == ["daily-sales-etl", "second"]
    (job,) = member.get("/api/v1/calendar/minute", {"at": busy["minute"]}).json()["jobs"]
    assert (job["owner"], job["starts"], job["times"]) == ("data-engineering", 1, [busy["minute"]])


def test_a_change_of_a_job_is_seen_at_once(root: APIClient) -> None:
    job = create(root)["jobId"]

    def starts() -> int:
        return sum(root.get("/api/v1/calendar").json()["starts"])

    assert starts() == 7
    assert root.patch(f"/api/v1/jobs/{job}", {"schedule": "0 */12 * * *"}, format="json").status_code == 200
    assert starts() == 14
    assert root.post(f"/api/v1/jobs/{job}/pause").status_code == 200
    assert starts() == 0
    assert root.post(f"/api/v1/jobs/{job}/resume").status_code == 200
    assert starts() == 14
    assert root.delete(f"/api/v1/jobs/{job}").status_code == 204
    assert starts() == 0


def test_the_minute_must_be_an_instant_with_its_zone(root: APIClient) -> None:
    for query in ({}, {"at": "2027-01-01"}, {"at": "2027-01-01T00:00:00"}, {"at": "now"}, {"when": "x"}):
        problem_of(root.get("/api/v1/calendar/minute", query), 400)
    far = minute_of(utcnow() + timedelta(days=3000)).isoformat()
    assert root.get("/api/v1/calendar/minute", {"at": far}).json()["jobs"] == []
