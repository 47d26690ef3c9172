"""The sentence and the warnings that people read before they save a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.schedules import describe, parse_schedule, warnings

BERLIN = {"timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("0 2 * * *", "At 02:00 (UTC)"),
        ({"cron": "30 2 * * *", **BERLIN}, "At 02:30 (Europe/Berlin)"),
        ("*/10 * * * * *", "Every 10 seconds (UTC)"),
        ("*/90 * * * *", "Every hour (UTC)"),
        ("5-5 * * * *", "At 5 minutes past the hour (UTC)"),
        ("0 9 * * mon-fri", "At 09:00, Monday through Friday (UTC)"),
        ("0 0 * * 0-7", "At 00:00, every day (UTC)"),
        ("0 0 * 3 SUN-7", "At 00:00, every day, in March (UTC)"),
        ("0 0 * * 0,7", "At 00:00, on Sunday (UTC)"),
        ("0 0 * * sun,0,mon", "At 00:00, on Monday or Sunday (UTC)"),
        ("0 0 13 * FRI", "At 00:00, on day 13 of the month, and also on Friday (UTC)"),
        (
            {"cron": "0 0 13 * FRI", "dayMatch": "and"},
            "At 00:00, on day 13 of the month, and only where that is Friday (UTC)",
        ),
        (
            "0 0 */2 * FRI",
            "At 00:00, on the days of '*/2' of the month, and only where that is Friday (UTC)",
        ),
        ("0 0 L * *", "At 00:00, on the last day of the month (UTC)"),
        ("0 0 1,L * *", "At 00:00, on day 1 and the last day of the month (UTC)"),
        ("0 0 L-1 * *", "At 00:00, on the day before the last day of the month (UTC)"),
        ("0 0 L-3 * *", "At 00:00, on the day 3 days before the last day of the month (UTC)"),
        (
            "0 0 * * MON#1,FRIL",
            "At 00:00, on the first Monday of the month or the last Friday of the month (UTC)",
        ),
        (
            "0 0 1-5,8 3 MON",
            "At 00:00, on days 1 to 5 and 8 of the month, and also on Monday, in March (UTC)",
        ),
        (
            {"cron": "0 2 * * *", "start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
            "At 02:00 (UTC), from 2027-01-01T00:00:00Z, until 2028-01-01T00:00:00Z",
        ),
        ({"every": "90s"}, "Every 1m30s"),
        ({"at": "2026-12-24T18:00:00Z"}, "Once, at 2026-12-24T18:00:00Z"),
        ({"after": "5m"}, "Once, 5m after the job is created"),
        ("now", "Once, as soon as the job is created"),
    ],
)
def test_a_schedule_is_put_in_words(value: object, sentence: str):
    assert describe(parse_schedule(value)) == sentence


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("0 0 13 * FRI", ["either day field is enough"]),
        ({"cron": "0 0 13 * FRI", "dayMatch": "and"}, ["both day fields have to match"]),
        ("0 0 */2 * FRI", ["both day fields have to match", "begins anew on day 1 of every month"]),
        ("0 0 31 * *", ["has a day 31"]),
        ("0 0 29 2 *", ["has a day 29"]),
        ("0 0 * * FRI#5", ["Most months have no fifth"]),
        ("*/7 * * * *", ["from 56 to the next 0 it is 4, not 7"]),
        ("0 */5 * * *", ["from 20 to the next 0 it is 4, not 5"]),
        ("*/90 * * * *", ["is 0 alone"]),
        ("0 0 * * */2", ["begins anew on every Sunday"]),
        ("0 0 2 * * *", ["the first, '0', is the second"]),
        (
            {"cron": "30 2 * * *", **BERLIN},
            [
                "On 2027-03-28 the clock in Europe/Berlin goes from 02:00 to 03:00: 02:30 does not exist, "
                "and it runs at 03:00 (dstGap runAfter).",
                "On 2027-10-31 the clock in Europe/Berlin goes from 03:00 back to 02:00: 02:30 comes twice, "
                "and it runs the first time only (dstOverlap first).",
            ],
        ),
        (
            {"cron": "30 2 * * *", **BERLIN, "dstGap": "skip", "dstOverlap": "both"},
            ["does not run then (dstGap skip)", "runs both times (dstOverlap both)"],
        ),
        (
            {"cron": "30 2 * * *", **BERLIN, "dstOverlap": "second"},
            ["dstGap runAfter", "the second time only (dstOverlap second)"],
        ),
        (
            {"cron": "*/10 2 * * *", **BERLIN},
            ["does not run then, because it follows", "runs both times, because it follows"],
        ),
        ({"cron": "0 * * * *", **BERLIN, "dstGap": "skip"}, ["have no effect here"]),
        (
            {"cron": "30 23 * * *", "timezone": "Asia/Beirut"},
            ["goes from 2027-10-31 00:00 back to 2027-10-30 23:00: 23:30 comes twice"],
        ),
    ],
)
def test_what_may_surprise_is_said(value: object, parts: list[str]):
    said = warnings(parse_schedule(value))
    assert len(said) == len(parts)
    for sentence, part in zip(said, parts, strict=True):
        assert part in sentence


def test_a_day_that_a_zone_left_out_is_told_with_both_dates():
    skipped = parse_schedule({"cron": "0 2 30 12 *", "timezone": "Pacific/Apia"})
    said = warnings(skipped, datetime(2011, 1, 1, tzinfo=UTC))
    assert said == [
        "On 2011-12-30 the clock in Pacific/Apia goes from 2011-12-30 00:00 to 2011-12-31 00:00: "
        "02:00 does not exist, and it runs at 00:00 (dstGap runAfter)."
    ]


@pytest.mark.parametrize(
    "value",
    [
        "0 2 * * *",
        "*/5 * * * *",
        "0 */6 * * *",
        "0 0 1 */3 *",
        "0 9 * * MON-FRI",
        "0 0 L * *",
        "0 0 31 1,12 *",
        {"cron": "0 4 * * *", **BERLIN},
        {"cron": "0 * * * *", **BERLIN},
        {"cron": "0 2 * * *", "timezone": "Asia/Tokyo"},
        {"every": "10s"},
        {"at": "2026-12-24T18:00:00Z"},
        "now",
    ],
)
def test_where_nothing_is_unusual_nothing_is_said(value: object):
    assert warnings(parse_schedule(value)) == []
