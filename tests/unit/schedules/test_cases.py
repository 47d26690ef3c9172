"""The table of cases that were worked out by hand."""

from __future__ import annotations

import pytest

from jobs.schedules import parse_schedule
from tests.unit.schedules.cases import CASES, EXPRESSIONS, LINES, read_case


@pytest.mark.parametrize(("group", "line"), LINES, ids=[line for _, line in LINES])
def test_a_schedule_fires_when_the_calendar_says(group: str, line: str):
    case = read_case(line)
    schedule = parse_schedule(case.value)
    fires, after = [], case.after
    for _ in case.fires:
        after = schedule.next_fire(after)
        fires.append(after)
    assert fires == case.fires


def test_the_table_is_as_long_as_was_asked_for():
    assert len(CASES) >= 150
    assert len(EXPRESSIONS) >= 100
