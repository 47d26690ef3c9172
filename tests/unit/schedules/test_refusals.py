"""What is not understood is refused, and the message names the value, the place and what is allowed."""

from __future__ import annotations

from datetime import datetime

import pytest

from jobs.schedules import parse_schedule
from scheduler_project.kernel.errors import InvalidValue

INSTANT = "2027-01-01T00:00:00Z"
LATER = "2028-01-01T00:00:00Z"

EXPRESSIONS = [
    ("* * * *", "4 fields"),
    ("* * * * * * *", "7 fields"),
    ("daily", "1 fields"),
    ("60 * * * *", "'60' in the minute field", "0 to 59"),
    ("* 24 * * *", "'24' in the hour field", "0 to 23"),
    ("* * 0 * *", "'0' in the day-of-month field", "1 to 31"),
    ("* * 32 * *", "'32' in the day-of-month field", "1 to 31"),
    ("* * * 0 *", "'0' in the month field", "JAN to DEC"),
    ("* * * 13 *", "'13' in the month field", "1 to 12"),
    ("* * * * 8", "'8' in the day-of-week field", "0 to 7"),
    ("60 * * * * *", "'60' in the second field", "0 to 59"),
    ("99999 * * * *", "'99999' in the minute field"),
    ("-1 * * * *", "'-1' in the minute field"),
    ("1- * * * *", "'1-' in the minute field"),
    ("1.5 * * * *", "'1.5' in the minute field"),
    ("*/0 * * * *", "'*/0' in the minute field", "step of 0"),
    ("*/-5 * * * *", "'*/-5' in the minute field"),
    ("*/ * * * *", "'*/' in the minute field"),
    ("*5 * * * *", "'*5' in the minute field"),
    ("5-1 * * * *", "'5-1' in the minute field", "backwards"),
    ("0 22-2 * * *", "'22-2' in the hour field", "backwards"),
    ("0 0 * * FRI-MON", "'FRI-MON' in the day-of-week field", "backwards"),
    ("0 0 * NOV-FEB *", "'NOV-FEB' in the month field", "backwards"),
    ("1,,2 * * * *", "'' in the minute field"),
    (", * * * *", "'' in the minute field"),
    ("0 0 * FOO *", "'FOO' in the month field"),
    ("0 0 * MON *", "'MON' in the month field"),
    ("MON 0 * * *", "'MON' in the minute field"),
    ("? * * * *", "'?' in the minute field"),
    ("L * * * *", "'L' in the minute field"),
    ("0 0 * * L", "'L' in the day-of-week field"),
    ("0 0 L-31 * *", "'L-31' in the day-of-month field"),
    ("0 0 32W * *", "'32W' in the day-of-month field"),
    ("0 0 W15 * *", "'W15' in the day-of-month field"),
    ("0 0 1-5W * *", "'1-5W' in the day-of-month field"),
    ("0 0 L/2 * *", "'L/2' in the day-of-month field"),
    ("0 0 * * FRI#0", "'FRI#0' in the day-of-week field"),
    ("0 0 * * FRI#6", "'FRI#6' in the day-of-week field", "1 to 5"),
    ("0 0 * * 8#1", "'8#1' in the day-of-week field"),
    ("0 0 * * FRI#", "'FRI#' in the day-of-week field"),
    ("0 0 * * XXXL", "'XXXL' in the day-of-week field"),
    ("0 0 1 january *", "'january' in the month field"),
    ("0 0 * * monday", "'monday' in the day-of-week field"),
    ("0 0 last * *", "'last' in the day-of-month field"),
    ("H * * * *", "'H' in the minute field"),
    ("0~30 * * * *", "'0~30' in the minute field"),
    ("٣ * * * *", "in the minute field"),
    ("@reboot", "'@reboot'", "@daily"),
    ("@every 5m", "'@every 5m'", "@daily"),
    ("0 0 31 2 *", "never fires: no date matches it"),
    ("0 0 30 2 *", "never fires"),
    ("0 0 31 4,6,9,11 *", "never fires"),
    ("0 0 30W 2 *", "never fires"),
    ("0 0 L-30 4 *", "never fires"),
    ("0 0 30,31 2 *", "never fires"),
    ("every hour", "'hour' is not a length of time", "5m"),
    ("every 10ms", "at least 1s"),
    ("every", "'' is not a length of time"),
    ("at noon", "'noon' is not allowed for at", "2026-12-24T18:00:00Z"),
    ("2026-12-24T18:00:00", "offset"),
    ("30 2 * * * Europe/Berln", "'Europe/Berln' is not a time zone", "Europe/Berlin"),
    ("30 2 * * Europe/Berlin", "4 fields"),
    ("UTC", "1 fields"),
    ("now then", "2 fields"),
    ("* " * 300, "at most 500 characters"),
]

VALUES = [
    (None, "null"),
    (5, "5 is not a schedule"),
    (True, "true"),
    ([], "[]"),
    (["* * * * *"], "is not a schedule"),
    ({}, "exactly one"),
    ({"timezone": "UTC"}, "exactly one"),
    ({"cron": "* * * * *", "every": "5m"}, "exactly one"),
    ({"cron": "* * * * *", "tz": "UTC"}, "'tz'", "timezone"),
    ({"at": INSTANT, "timezone": "UTC"}, "'timezone'", "nothing else"),
    ({"every": "5m", "timezone": "UTC"}, "'timezone'", "anchor"),
    ({"cron": None}, "None is not a cron expression"),
    ({"cron": 5}, "5 is not a cron expression"),
    ({"cron": "now"}, "'now'"),
    ({"cron": "* * * * *", "timezone": "Europe/Berln"}, "'Europe/Berln'", "Europe/Berlin"),
    ({"cron": "* * * * *", "timezone": "europe/berlin"}, "'europe/berlin'", "Europe/Berlin"),
    ({"cron": "* * * * *", "timezone": "+02:00"}, "'+02:00'", "IANA"),
    ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "IANA"),
    ({"cron": "* * * * *", "timezone": "Factory"}, "IANA"),
    ({"cron": "* * * * *", "timezone": ""}, "IANA"),
    ({"cron": "* * * * *", "timezone": None}, "None"),
    ({"cron": "* * * * *", "timezone": ["UTC"]}, "IANA"),
    ({"cron": "* * * * *", "dstGap": "run_after"}, "'run_after'", "runAfter, skip"),
    ({"cron": "* * * * *", "dstOverlap": "last"}, "'last'", "first, second, both"),
    ({"cron": "* * * * *", "dayMatch": "xor"}, "'xor'", "or, and"),
    ({"cron": "* * * * *", "dayMatch": None}, "None", "or, and"),
    ({"cron": "* * * * *", "start": "2027-01-01"}, "'2027-01-01'", "start", "offset"),
    ({"cron": "* * * * *", "start": LATER, "end": INSTANT}, "later than end"),
    ({"cron": "0 0 29 2 *", "start": INSTANT, "end": LATER}, "never fires between"),
    ({"cron": "0 0 29 2 MON#1", "dayMatch": "and"}, "never fires"),
    (
        {
            "cron": "30 2 25-31 3 SUN",
            "dayMatch": "and",
            "dstGap": "skip",
            "timezone": "Europe/Berlin",
        },
        "never fires",
        "(dstGap skip)",
    ),
    (
        {"cron": "30 2 * 3 SUNL", "dstGap": "skip", "timezone": "Europe/Berlin"},
        "never fires: the clock in Europe/Berlin is put forward past each time",
        "(dstGap skip)",
    ),
    ({"at": "2026-12-24T18:00:00"}, "'2026-12-24T18:00:00'", "offset"),
    ({"at": "2026-12-24"}, "offset"),
    ({"at": "tomorrow"}, "'tomorrow'"),
    ({"at": 1798135200}, "1798135200"),
    ({"at": None}, "None"),
    ({"at": "2026-02-30T00:00:00Z"}, "'2026-02-30T00:00:00Z'"),
    ({"at": "0001-01-01T00:00:00+14:00"}, "1970 to 2999"),
    ({"at": "9999-12-31T23:59:59-14:00"}, "1970 to 2999"),
    ({"at": "1970-01-01T00:00:00+02:00"}, "1970 to 2999"),
    ({"at": datetime(2027, 1, 1)}, "offset"),  # noqa: DTZ001 - naive on purpose
    ({"after": "soon"}, "'soon'"),
    ({"after": "-5m"}, "'-5m'"),
    ({"after": "99999d"}, "'99999d'"),
    ({"after": "0.0001s"}, "whole milliseconds"),
    ({"every": "999ms"}, "at least 1s"),
    ({"every": "0s"}, "at least 1s"),
    ({"every": 0}, "at least 1s"),
    ({"every": True}, "True"),
    ({"every": "1h", "start": "2027-01-01T00:10:00Z", "end": "2027-01-01T00:05:00Z"}, "later than end"),
    ({"now": False}, "False"),
]


@pytest.mark.parametrize(("text", "parts"), [(text, parts) for text, *parts in EXPRESSIONS])
def test_an_expression_that_is_not_understood_is_refused_with_its_field(text: str, parts: list[str]):
    assert_refused(text, parts)


@pytest.mark.parametrize(("value", "parts"), [(value, parts) for value, *parts in VALUES])
def test_a_value_that_is_not_understood_is_refused(value: object, parts: list[str]):
    assert_refused(value, parts)


def assert_refused(value: object, parts: list[str]) -> None:
    with pytest.raises(InvalidValue) as refusal:
        parse_schedule(value, field="theSchedule")
    assert refusal.value.field == "theSchedule"
    for part in parts:
        assert part in refusal.value.message


def test_the_message_does_not_grow_with_the_value():
    for value in ("x" * 10**6, {"cron": "* * * * *", "timezone": "x" * 10**6}, {"x" * 10**6: 1}):
        with pytest.raises(InvalidValue) as refusal:
            parse_schedule(value)
        assert len(refusal.value.message) < 600


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"), (True, "true"), (False, "false"), ("", "''"), ("  ", "'  '"),
        ([], "[]"), ([1], "[1]"), (0, "0"), (1.5, "1.5"),
    ],
)  # fmt: skip
def test_what_is_no_schedule_at_all_is_shown_beside_what_is(value: object, shown: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_schedule(value)
    assert refused.value.message.startswith(f"{shown} is not a schedule: allowed is a cron expression")
