"""Overlap rules, catching up and backfills, by real processes: what ran when, from what the runs wrote."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.e2e.test_runs import body
from tests.system import System, running_system

SECOND = timedelta(seconds=1)
LONG = "sleep 5"


def job(system: System, overlap: str, command: str = LONG) -> str:
    every = {"every": "2s"}
    (identity,) = system.create_jobs({**body(overlap, command, every), "overlap": overlap})
    return identity


def spans(rows: list[dict[str, Any]]) -> list[tuple[datetime, datetime]]:
    begun = [row for row in rows if row["started_at"] and row["finished_at"]]
    return sorted((row["started_at"], row["finished_at"]) for row in begun)


def ended(system: System, identity: str, reason: str, number: int) -> list[dict[str, Any]]:
    """The runs of the job, once so many have ended for that reason."""

    def enough() -> list[dict[str, Any]]:
        rows = system.executions(identity)
        return (
            rows
            if sum(bool(row["finished_at"]) and row["reason"] == reason for row in rows) >= number
            else []
        )

    found: list[dict[str, Any]] = system.wait_for(enough, f"{number} runs ended: {reason}")
    return found


def test_each_overlap_rule(tmp_path: Path) -> None:
    with running_system(tmp_path) as system:
        system.start_all()
        system.wait_until_ready()
        jobs = {overlap: job(system, overlap) for overlap in ("forbid", "allow", "queue", "replace")}
        rows = {
            "replace": ended(system, jobs["replace"], "replaced", 3),
            "queue": ended(system, jobs["queue"], "succeeded", 2),
            "allow": ended(system, jobs["allow"], "succeeded", 2),
            "forbid": ended(system, jobs["forbid"], "skipped_overlap", 1),
        }

    for overlap in ("forbid", "queue", "replace"):
        alone = spans(rows[overlap])
        assert all(end <= start for (_, end), (start, _) in pairwise(alone)), overlap
    (first, second, *_) = spans(rows["allow"])
    assert second[0] < first[1], "they run side by side"
    started = [row for row in rows["allow"] if row["started_at"]]
    assert max(row["started_at"] - row["scheduled_for"] for row in started) < SECOND
    planned = [row["scheduled_for"] for row in rows["queue"]]
    assert all(later - earlier == 2 * SECOND for earlier, later in pairwise(planned)), "none is skipped"
    replaced = [row for row in rows["replace"] if row["finished_at"] and row["reason"] == "replaced"]
    assert {row["state"] for row in replaced} == {"Cancelled"}
    assert any(row["started_at"] for row in replaced)
    assert {row["missed"] for row in rows["forbid"] if row["reason"] == "skipped_overlap"} == {2}


def test_a_backfill_has_no_more_at_once_than_it_says(tmp_path: Path) -> None:
    most = 2
    with running_system(tmp_path, PUNCTUAL_CATCHUP_ACTIVE="8") as system:
        system.start_all()
        system.wait_until_ready()
        (identity,) = system.create_jobs(body("hourly", "sleep 1", "0 * * * *"))
        system.console.run(BACKFILL, identity=identity, most=most)
        system.wait_for(
            lambda: sum(row["finished_at"] is not None for row in backfilled(system, identity)) == 6,
            "six runs have ended",
        )
        rows = backfilled(system, identity)
    assert [row["reason"] for row in rows] == ["succeeded"] * 6
    changes = sorted([(row["started_at"], 1) for row in rows] + [(row["finished_at"], -1) for row in rows])
    at_once, most_at_once = 0, 0
    for _, change in changes:
        at_once += change
        most_at_once = max(most_at_once, at_once)
    assert most_at_once == most


def backfilled(system: System, identity: str) -> list[dict[str, Any]]:
    return [row for row in system.executions(identity) if row["trigger"] == "backfill"]


BACKFILL = """
from datetime import timedelta
from django.contrib.auth.models import User
from jobs.backfills import BackfillRequest, backfill
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
now = utcnow()
hour = now.replace(minute=0, second=0, microsecond=0)
job = Job.objects.select_related("owner").get(id=identity)
asked = BackfillRequest(hour - timedelta(hours=6), hour, most)
result = len(backfill(job, asked, User.objects.get(username="tests"), now))
"""
