"""Two cron libraries, where they know the rules: croniter without changes of the clock, cronsim with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import croniter
import cronsim
import pytest

from jobs.schedules import fires_between, parse_schedule
from jobs.schedules.zones import load_zone
from tests.unit.schedules.cases import EXPRESSIONS

TEN_YEARS = timedelta(days=3660)
PLAIN = [text for text in EXPRESSIONS if len(text.split()) == 5 and not any(sign in text for sign in "LW#@?")]
CRONITER_DIFFERS = {
    "5-5 * * * *": "a range of one is the whole range",
    "0 0 13,* * FRI": "a list with * does not count as restricted",
}
CRONSIM_DIFFERS = {
    "0 12 * * FRI-SUN": "refused",
}


@pytest.mark.parametrize("text", sorted(set(PLAIN) - set(CRONITER_DIFFERS)))
def test_without_changes_of_the_clock_croniter_agrees(text: str):
    one_is_starred = "*" in (text.split()[2][0], text.split()[4][0])
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    theirs = croniter.croniter(text, begin, day_or=not one_is_starred)
    ours = fires_between(parse_schedule(text), begin, begin + TEN_YEARS, 60)
    assert ours == [theirs.get_next(datetime) for _ in ours]


@pytest.mark.parametrize("text", sorted(set(PLAIN) - set(CRONSIM_DIFFERS)))
@pytest.mark.parametrize("day", ["2027-03-27", "2027-10-30"])
def test_over_changes_of_the_clock_cronsim_agrees(text: str, day: str):
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    theirs = cronsim.CronSim(text, begin.astimezone(load_zone("Europe/Berlin")))
    schedule = parse_schedule({"cron": text, "timezone": "Europe/Berlin"})
    ours = fires_between(schedule, begin, begin + TEN_YEARS, 60)
    assert ours == _distinct(theirs, len(ours))


def _distinct(theirs: cronsim.CronSim, count: int) -> list[datetime]:
    """Its next instants; several times lost in one gap are one run here, and several there."""
    found: list[datetime] = []
    while len(found) < count:
        fire = next(theirs).astimezone(UTC)
        if not found or fire > found[-1]:
            found.append(fire)
    return found
