"""The starts of the coming days, minute by minute, and the jobs behind them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from executions.store import Store
from jobs.calendar import MINUTE, WEEK_MINUTES, calendar, starting_in
from jobs.models import Job
from tests.integration.jobs.chain import new_job

SINCE = datetime(2027, 3, 27, 22, 0, tzinfo=UTC)  # the clocks change in Berlin at 01:00 UTC of the 28th
MADE = SINCE - timedelta(days=3)
DAY = timedelta(days=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _window(store: Store) -> None:
    """Jobs that are made push what is due soon into an empty window."""


def made(schedule: Any, when: datetime = MADE, jitter: str = "0s") -> Job:
    return new_job(schedule, when, name=f"job-{Job.objects.count()}", jitter=jitter)


def starts(minutes: int = WEEK_MINUTES) -> dict[datetime, int]:
    found = calendar(Job.objects.all(), SINCE, minutes)
    return {found.since + n * MINUTE: count for n, count in enumerate(found.starts) if count}


def test_each_job_counts_where_its_schedule_starts_it() -> None:
    for schedule in ("0 2 * * *", "0 2 * * *", {"every": "6h", "anchor": "2027-03-27T20:00:00Z"}):
        made(schedule)
    found = starts()
    at_two = SINCE + timedelta(hours=4)
    assert [found[at_two + n * DAY] for n in range(7)] == [3] * 7
    assert found[at_two + timedelta(hours=6)] == 1
    assert sum(found.values()) == 2 * 7 + 28


def test_summer_time_moves_the_starts_of_a_zone() -> None:
    made({"cron": "30 2 * * *", "timezone": "Europe/Berlin"})
    assert list(starts(2 * 24 * 60)) == [
        datetime(2027, 3, 28, 1, 0, tzinfo=UTC),  # 02:30 does not exist: right after the gap
        datetime(2027, 3, 29, 0, 30, tzinfo=UTC),
    ]


def test_what_is_paused_deleted_or_past_its_end_does_not_count() -> None:
    paused, deleted = made("0 2 * * *"), made("0 2 * * *")
    made({"cron": "0 2 * * *", "end": "2027-03-29T02:00:00Z"})
    Job.objects.filter(id=paused.id).update(paused_at=SINCE)
    Job.objects.filter(id=deleted.id).update(archived_at=SINCE)
    assert list(starts().values()) == [1, 1]


def test_a_schedule_that_cannot_be_read_is_told_and_stops_nobody() -> None:
    made("0 2 * * *")
    broken = made("0 3 * * *")
    Job.objects.filter(id=broken.id).update(schedule={"cron": "0 3 * * *", "timezone": "Mars/Olympus"})
    found = calendar(Job.objects.all(), SINCE)
    assert (found.jobs, found.unreadable, sum(found.starts)) == (1, 1, 7)
    assert starting_in(Job.objects.all(), SINCE + timedelta(hours=5), 10) == ([], 0)


def test_only_jobs_that_start_in_the_week_are_counted() -> None:
    for schedule in ("0 2 * * *", "0 2 * * *", "0 2 1 1 *"):
        made(schedule)
        made(schedule, jitter="10m")
    found = calendar(Job.objects.all(), SINCE)
    assert (found.jobs, sum(found.starts)) == (4, 28)


def test_a_minute_lists_exactly_the_jobs_that_it_counts() -> None:
    """With jitter within, across and beyond the next fire, and sub-minute schedules."""
    for number in range(4):
        made("0 23 * * *", jitter="20m")
        made("*/5 * * * *", jitter=f"{number}h")
        made({"every": "7m30s"}, MADE + timedelta(milliseconds=700 * number), jitter="90s")
    made({"every": "20s", "anchor": SINCE.isoformat()})
    made("15,45 * * * * *")
    found = starts(150)
    for number in range(150):
        minute = SINCE + number * MINUTE
        listed, total = starting_in(Job.objects.all(), minute, 100)
        assert sum(item.count for item in listed) == found.get(minute, 0), minute
        assert total == len(listed)


def test_the_busiest_minutes_come_first_and_idle_ones_not_at_all() -> None:
    for _ in range(3):
        made("0 2 28 * *")
    made("0 3 28,29 * *")
    at_two = datetime(2027, 3, 28, 2, 0, tzinfo=UTC)
    hour = timedelta(hours=1)
    found = calendar(Job.objects.all(), SINCE)
    assert found.busiest(9) == [(at_two, 3), (at_two + hour, 1), (at_two + hour + DAY, 1)]
    assert found.busiest(1) == [(at_two, 3)]


def test_a_list_that_is_too_long_says_how_many_there_are() -> None:
    for _ in range(3):
        made("0 2 * * *")
    listed, total = starting_in(Job.objects.all(), SINCE + timedelta(hours=4), 2)
    assert (len(listed), total) == (2, 3)
    assert listed[0].times == [SINCE + timedelta(hours=4)]


def test_the_jobs_are_read_in_one_query() -> None:
    for number in range(5):
        made(f"{number} 2 * * *", jitter=f"{number}s")
    with CaptureQueriesContext(connection) as queries:
        assert sum(starts().values()) == 35
    assert len(queries) == 1
