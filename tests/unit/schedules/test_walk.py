"""Every expression of the table, for 400 days in zones of every sort, against a walk through each minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from jobs.schedules import (
    Cron,
    CronRule,
    DayMatch,
    DstGap,
    DstOverlap,
    count_fires,
    fires_between,
)
from jobs.schedules.fields import read_fields
from tests.unit.schedules.cases import EXPRESSIONS
from tests.unit.schedules.walker import (
    DAY,
    Expression,
    Timeline,
    fires_on_plain_days,
    fires_on_unusual_days,
    times_of_day,
    walk,
)

JUST = timedelta(microseconds=1)
DAYS = 400
EDGE = 3 * DAY
DENSE = 4
MINUTES_A_DAY = 1440
HOUR = timedelta(hours=1)
ZONES = {
    "Europe/Berlin": "2026-11-30",
    "America/New_York": "2026-11-30",
    "Australia/Lord_Howe": "2026-11-30",
    "Pacific/Chatham": "2026-11-30",
    "Asia/Beirut": "2026-11-30",
    "America/Santiago": "2026-11-30",
    "Africa/Casablanca": "2026-11-30",
    "Africa/Cairo": "2026-11-30",
    "America/St_Johns": "2026-11-30",
    "Asia/Kathmandu": "2026-11-30",
    "Pacific/Apia": "2011-09-01",
    "Europe/Moscow": "2010-10-01",
    "America/Caracas": "2015-12-01",
    "Asia/Pyongyang": "2015-06-01",
}
POLICIES = [
    ("runAfter", "first", "or"),
    ("skip", "second", "and"),
    ("runAfter", "both", "and"),
    ("skip", "both", "or"),
    ("runAfter", "second", "or"),
]


@cache
def timeline_of(zone: str) -> Timeline:
    begin = datetime.fromisoformat(ZONES[zone]).replace(tzinfo=UTC)
    return walk(zone, begin - EDGE, begin + DAYS * DAY + EDGE)


@pytest.mark.parametrize("zone", ZONES)
def test_all_expressions_fire_as_the_walk_through_every_minute_says(zone: str):
    """Each expression takes another of the policies in each zone; over the zones it meets all of them."""
    for number, text in enumerate(EXPRESSIONS, list(ZONES).index(zone)):
        check(zone, text, *POLICIES[number % len(POLICIES)])


def check(zone: str, text: str, gap: str, overlap: str, day_match: str) -> None:
    """Fire by fire, all of them; where there are more than 4 a day, fire by fire around the changes of the
    clock and on the first day, and by their number on each of the others."""
    timeline, expression = timeline_of(zone), Expression(text, day_match)
    rule = CronRule(read_fields(text).text, zone, DstGap(gap), DstOverlap(overlap), DayMatch(day_match))
    expected = fires_on_unusual_days(expression, timeline, gap, overlap)
    listed_one_by_one = spans_to_list(timeline, expression)
    for begin, times in fires_on_plain_days(expression, timeline).items():
        if any(first < begin + DAY and begin < last for first, last in listed_one_by_one):
            expected += [begin + time for time in times]
        else:
            assert count_fires(Cron(rule), begin - JUST, begin + DAY - JUST) == len(times), (rule, begin)
    for first, last in listed_one_by_one:
        of_these = sorted(fire for fire in expected if first <= fire < last)
        listed = fires_between(Cron(rule), first - JUST, last - JUST, len(of_these) + 1)
        assert listed == of_these, (rule, first)
        assert count_fires(Cron(rule), first - JUST, last - JUST) == len(of_these), (rule, first)


def spans_to_list(timeline: Timeline, expression: Expression) -> list[tuple[datetime, datetime]]:
    """[first, last) of what is compared fire by fire; the half days at both ends of the walk are left out."""
    days = sorted(timeline.plain_days.values())
    a_day = len(times_of_day(expression))
    if a_day <= DENSE:
        return [(days[0], days[-1] + DAY)]
    first = (days[0], days[0] + DAY)
    if a_day > MINUTES_A_DAY:
        return [first, *((c.instant - HOUR, c.instant + HOUR) for c in timeline.changes)]
    return [first, *((before + DAY, after) for before, after in pairwise(days) if after - before != DAY)]


def test_the_zones_have_all_sorts_of_changes():
    shifts = {
        len(change.lost) or -len(timeline_of(zone).occurrences[change.shown])
        for zone in ZONES
        for change in timeline_of(zone).changes
    }
    assert {60, 30, 24 * 60, -2} <= shifts  # minutes lost, or -2 where readings come twice


def test_the_walk_covers_the_days_it_claims():
    for zone in ZONES:
        timeline = timeline_of(zone)
        days = {*timeline.plain_days, *(reading.shown.date() for reading in timeline.unusual)}
        assert len(days) >= DAYS
