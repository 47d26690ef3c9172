"""The table of cases that were worked out by hand."""

from __future__ import annotations

from datetime import datetime

import pytest

from jobs.schedules import describe, parse_schedule
from tests.unit.schedules.cases import CASES, EXPRESSIONS, LINES, read_case


@pytest.mark.parametrize(("group", "line"), LINES, ids=[line for _, line in LINES])
def test_a_schedule_fires_when_the_calendar_says(group: str, line: str):
    case = read_case(line)
    schedule = parse_schedule(case.value)
    after: datetime | None = case.after
    fires = []
    for _ in case.fires:
        assert after is not None
        after = schedule.next_fire(after)
        fires.append(after)
    assert fires == case.fires


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_normal_form_says_the_same_and_can_be_put_in_words(text: str):
    schedule = parse_schedule(text)
    assert parse_schedule(schedule.to_json()) == schedule
    assert describe(schedule).endswith(" (UTC)")


def test_the_table_is_as_long_as_was_asked_for():
    assert len(CASES) >= 150
    assert len(EXPRESSIONS) >= 100
