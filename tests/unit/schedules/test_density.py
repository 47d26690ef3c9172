"""All the fires of a span at once are those that ``next_fire`` finds one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.schedules import Cron, Every, Schedule, Span, fires_after, parse_schedule
from jobs.schedules.density import fires_in
from scheduler_project.kernel.clock import MICROSECOND
from tests.unit.schedules.test_properties import crons, intervals

MINUTES = 5 * 60
MINUTE = timedelta(minutes=1)
# Around changes of the clock in the zones of ``crons``, and days without one.
SINCE = [
    datetime(2027, 3, 28, 0, 0, tzinfo=UTC),
    datetime(2026, 10, 24, 23, 30, tzinfo=UTC),
    datetime(2027, 4, 4, 2, 0, tzinfo=UTC),
    datetime(2027, 4, 3, 14, 0, tzinfo=UTC),
    datetime(2026, 10, 3, 15, 0, tzinfo=UTC),
    datetime(2011, 12, 30, 8, 0, tzinfo=UTC),
    datetime(2027, 2, 28, 22, 0, tzinfo=UTC),
    datetime(2026, 12, 31, 22, 30, tzinfo=UTC),
]
spans = st.sampled_from(
    [Span(), Span(start=SINCE[0]), Span(end=SINCE[0] + timedelta(hours=2, microseconds=5))]
)


def one_by_one(schedule: Schedule, since: datetime) -> list[datetime]:
    found = []
    for fire in fires_after(schedule, since - MICROSECOND):
        if fire >= since + MINUTES * MINUTE:
            break
        found.append(fire)
    return found


@settings(max_examples=200)
@given(crons | intervals, st.sampled_from(SINCE), spans)
def test_all_at_once_are_those_one_by_one(schedule: Cron | Every, since: datetime, span: Span) -> None:
    schedule = replace(schedule, span=span)
    expected = one_by_one(schedule, since)
    found = fires_in(schedule, since, MINUTES)
    assert found.per_minute() == Counter((fire - since) // MINUTE for fire in expected)
    if not found.crowded:
        assert [since + time * MICROSECOND for time in found.times] == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [("2027-03-28T00:00:00Z", {0: 1}), ("2027-03-28T04:59:59.5Z", {299: 1}), ("2027-03-28T05:00:00Z", {}),
     ("2027-03-27T23:59:59Z", {})],
)  # fmt: skip
def test_what_fires_once_counts_where_it_does(at: str, expected: dict[int, int]) -> None:
    assert fires_in(parse_schedule({"at": at}), SINCE[0], MINUTES).per_minute() == expected
