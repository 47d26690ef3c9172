"""What each kind of schedule says: when it fires, and how it is written down."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from jobs.schedules import At, count_fires, fires_between, jitter_offset, parse_schedule
from jobs.schedules.zones import load_zone, zone_names
from scheduler_project.kernel.errors import InvalidValue

CREATED = datetime(2026, 11, 30, 4, 5, 6, 789000, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_cron_fires_first_strictly_later_than_its_creation():
    schedule = parse_schedule("0 2 * * *")
    assert schedule.first_fire(utc("2026-11-30 01:59:59")) == utc("2026-11-30 02:00")
    assert schedule.first_fire(utc("2026-11-30 02:00:00")) == utc("2026-12-01 02:00")
    assert schedule.first_fire(utc("2026-11-30 02:00:00.000001")) == utc("2026-12-01 02:00")
    assert schedule.first_fire(utc("2026-11-30 01:59:59.999999")) == utc("2026-11-30 02:00")


def test_every_counts_from_the_creation_of_the_job():
    schedule = parse_schedule({"every": "10s"}).anchored(CREATED)
    assert schedule.first_fire(CREATED) == CREATED + timedelta(seconds=10)
    assert schedule.next_fire(CREATED + timedelta(seconds=10)) == CREATED + timedelta(seconds=20)
    assert schedule.next_fire(CREATED + timedelta(seconds=19, microseconds=999999)) == CREATED + timedelta(
        seconds=20
    )
    assert schedule.to_json() == {"every": "10s", "anchor": "2026-11-30T04:05:06.789000Z"}


def test_every_that_is_not_anchored_counts_from_where_it_is_asked():
    schedule = parse_schedule({"every": "1h"})
    assert fires_between(schedule, CREATED, CREATED + timedelta(hours=2), 10) == [
        CREATED + timedelta(hours=1),
        CREATED + timedelta(hours=2),
    ]


def test_every_with_a_start_date_fires_at_the_start_date():
    schedule = parse_schedule({"every": "1h", "start": "2027-01-01T00:30:00Z"}).anchored(CREATED)
    assert schedule.first_fire(CREATED) == utc("2027-01-01 00:30")
    assert schedule.next_fire(utc("2027-01-01 00:30")) == utc("2027-01-01 01:30")
    assert schedule.to_json() == {
        "every": "1h",
        "anchor": "2027-01-01T00:30:00Z",
        "start": "2027-01-01T00:30:00Z",
    }


def test_every_with_a_start_date_in_the_past_keeps_its_grid():
    schedule = parse_schedule({"every": "1h", "start": "2020-01-01T00:30:00Z"}).anchored(CREATED)
    assert schedule.first_fire(CREATED) == utc("2026-11-30 04:30")


def test_at_fires_at_its_instant_even_when_that_is_past():
    schedule = parse_schedule({"at": "2026-12-24T18:00:00+01:00"})
    assert schedule.first_fire(CREATED) == utc("2026-12-24 17:00")
    assert schedule.first_fire(utc("2027-01-01 00:00")) == utc("2026-12-24 17:00")
    assert schedule.next_fire(utc("2026-12-24 16:59")) == utc("2026-12-24 17:00")
    assert schedule.next_fire(utc("2026-12-24 17:00")) is None
    assert schedule.to_json() == {"at": "2026-12-24T17:00:00Z"}
    assert schedule.anchored(CREATED) is schedule


def test_after_and_now_become_instants_when_the_job_is_created():
    assert parse_schedule({"after": "5m"}).anchored(CREATED) == At(CREATED + timedelta(minutes=5))
    assert parse_schedule("now").anchored(CREATED) == At(CREATED)
    assert parse_schedule({"after": "5m"}).first_fire(CREATED) == CREATED + timedelta(minutes=5)
    assert parse_schedule("now").first_fire(CREATED) == CREATED


@pytest.mark.parametrize("value", ["now", {"after": "5m"}])
def test_a_one_time_schedule_that_is_not_anchored_has_no_next_fire(value: object):
    assert parse_schedule(value).next_fire(CREATED) is None


@pytest.mark.parametrize(
    ("value", "kind", "recurring"),
    [
        ("0 2 * * *", "cron", True),
        ({"every": "10s"}, "every", True),
        ({"at": "2026-12-24T18:00:00Z"}, "at", False),
        ({"after": "5m"}, "after", False),
        ("now", "now", False),
    ],
)
def test_a_schedule_says_its_kind_and_whether_it_recurs(value: object, kind: str, recurring: bool):
    schedule = parse_schedule(value)
    assert (schedule.kind, schedule.recurring) == (kind, recurring)


def test_start_and_end_date_are_included():
    schedule = parse_schedule(
        {"cron": "0 2 * * *", "start": "2027-01-01T02:00:00Z", "end": "2027-01-03T02:00:00Z"}
    )
    assert fires_between(schedule, CREATED, utc("2028-01-01 00:00"), 10) == [
        utc("2027-01-01 02:00"),
        utc("2027-01-02 02:00"),
        utc("2027-01-03 02:00"),
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("every 30s", {"every": "30s"}),
        (" Every  1h 30m ", {"every": "90m"}),
        ("after 5m", {"after": "5m"}),
        ("at 2026-12-24T18:00:00Z", {"at": "2026-12-24T18:00:00Z"}),
        ("2026-12-24 19:00:00+01:00", {"at": "2026-12-24T18:00:00Z"}),
        ("NOW", {"now": True}),
        ("30 2 * * * Europe/Berlin", {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}),
        ("*/10 * * * * * Asia/Tokyo", {"cron": "*/10 * * * * *", "timezone": "Asia/Tokyo"}),
        ("@daily America/Argentina/Ushuaia", {"cron": "@daily", "timezone": "America/Argentina/Ushuaia"}),
        ("0 2 * * MON UTC", {"cron": "0 2 * * MON"}),
        ("0 2 * * MON/2", {"cron": "0 2 * * MON/2"}),
        ("0 0 2 * * MON", {"cron": "0 0 2 * * MON"}),
    ],
)
def test_a_text_is_the_object_that_it_stands_for(text: str, same: object) -> None:
    assert parse_schedule(text) == parse_schedule(same)


def test_the_normal_form_of_cron_states_every_policy():
    assert parse_schedule("  @daily ").to_json() == {
        "cron": "0 0 * * *",
        "timezone": "UTC",
        "dstGap": "runAfter",
        "dstOverlap": "first",
        "dayMatch": "or",
    }


@pytest.mark.parametrize(
    "value",
    [
        "0 9-17 ? jan-mar mon-fri",
        {
            "cron": "30 2 L * *",
            "timezone": "Europe/Berlin",
            "dstGap": "skip",
            "dstOverlap": "both",
            "dayMatch": "and",
            "start": "2027-01-01T00:00:00Z",
            "end": "2028-01-01T00:00:00.5Z",
        },
        {"every": "1500ms", "anchor": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
        {"at": "2026-12-24T18:00:00.000001Z"},
        {"after": "1h30m"},
        "now",
    ],
)
def test_the_normal_form_is_read_back_to_an_equal_schedule(value: object):
    schedule = parse_schedule(value)
    again = parse_schedule(schedule.to_json())
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.to_json() == schedule.to_json()


def test_without_fires_left_there_is_no_next():
    schedule = parse_schedule({"cron": "0 2 * * *", "end": "2027-01-01T02:00:00Z"})
    assert schedule.next_fire(utc("2026-12-31 02:00")) == utc("2027-01-01 02:00")
    assert schedule.next_fire(utc("2027-01-01 02:00")) is None
    assert (
        parse_schedule({"every": "1h", "end": "2026-11-30T05:00:00Z"}).anchored(CREATED).first_fire(CREATED)
        is None
    )


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("* * * * * *", 365 * 86_400),
        ("* * * * *", 365 * 1440),
        ({"cron": "0 2 * * *", "timezone": "Europe/Berlin"}, 365),
        ({"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstGap": "skip"}, 364),
        ({"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstOverlap": "both"}, 366),
        ({"cron": "0 2 * * *", "start": "2027-12-30T02:00:00Z"}, 2),
        ({"cron": "0 2 * * *", "end": "2027-01-02T02:00:00Z"}, 2),
        ({"every": "1s", "anchor": "2020-01-01T00:00:00Z"}, 365 * 86_400),
        ({"every": "1h", "anchor": "2027-12-31T22:00:00Z"}, 2),
        ({"every": "1h", "start": "2027-12-31T22:00:00Z"}, 3),
        ({"at": "2027-06-01T00:00:00Z"}, 1),
        ({"at": "2026-06-01T00:00:00Z"}, 0),
    ],
)
def test_a_year_of_fires_is_counted(value: object, count: int):
    year = utc("2027-01-01 00:00"), utc("2028-01-01 00:00")
    assert count_fires(parse_schedule(value), *year) == count
    assert count_fires(parse_schedule(value), *reversed(year)) == 0


def test_zones_come_from_the_pinned_package_and_not_from_the_host(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    load_zone.cache_clear()
    assert load_zone("Asia/Kathmandu").utcoffset(CREATED) == timedelta(hours=5, minutes=45)
    assert load_zone("America/Argentina/Buenos_Aires").utcoffset(CREATED) == timedelta(hours=-3)
    assert all(load_zone(name).utcoffset(CREATED) is not None for name in zone_names())


def test_jitter_spreads_jobs_evenly():
    width = timedelta(seconds=10)
    offsets = sorted(jitter_offset(UUID(int=number), width) for number in range(1000))
    for share in range(1, 10):
        assert abs(offsets[share * 100] - share * timedelta(seconds=1)) < timedelta(milliseconds=600)
    assert jitter_offset(UUID(int=1), timedelta(0)) == timedelta(0)
    with pytest.raises(InvalidValue, match="negative"):
        jitter_offset(UUID(int=1), timedelta(seconds=-1))
