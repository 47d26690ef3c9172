"""What the Date of an answer says of an engine's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from containers.clocks import ServerClock, clock_ahead
from scheduler_project.kernel.clock import ManualClock

NOON = datetime(2026, 12, 24, 12, 0, 0, 300_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead_s", "least_s"),
    [(0.0, 0.0), (0.6, 0.0), (0.9, 0.5), (-0.4, -0.3), (60.0, 59.5), (-60.0, -59.3), (-86_400.0, -86_399.3)],
)
def test_it_is_ahead_by_what_agrees_with_the_answer_at_least(ahead_s: float, least_s: float) -> None:
    date = format_datetime((NOON + timedelta(seconds=ahead_s)).replace(microsecond=0), usegmt=True)
    found = clock_ahead(date, NOON, NOON + timedelta(seconds=0.2))
    assert found == timedelta(seconds=least_s)
    assert abs(found.total_seconds() - ahead_s) <= 1.0


def test_a_slow_answer_says_less() -> None:
    date = format_datetime(NOON.replace(microsecond=0) + timedelta(seconds=10), usegmt=True)
    assert clock_ahead(date, NOON, NOON + timedelta(seconds=20)) == timedelta(0)


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 24 Dec 2026 12:00:00 -0000"])
def test_no_date_says_nothing(date: str) -> None:
    assert clock_ahead(date, NOON, NOON) == timedelta(0)


def test_what_a_prompt_answer_said_holds_until_the_next() -> None:
    ours = ManualClock(NOON)
    theirs = ServerClock(ours)
    assert theirs.now() == NOON
    theirs.learn("Thu, 24 Dec 2026 13:00:00 GMT", NOON)
    assert theirs.now() == NOON.replace(hour=13, microsecond=0)
    ours.advance(timedelta(seconds=10))
    theirs.learn("Thu, 24 Dec 2026 12:00:00 GMT", NOON)  # ten seconds under way
    assert theirs.now() == NOON.replace(hour=13, second=10, microsecond=0)
