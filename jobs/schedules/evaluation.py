"""When a cron expression fires: wall-clock times of a zone, mapped to instants.

The time line of a zone is a row of stretches with one offset each. In each, an expression's wall-clock
times are looked up as on a calendar; only where two stretches meet is there something to decide:

1. The clock goes forward: the times between are lost. With ``runAfter`` a fixed-time job that lost any
   of them runs once, at the instant the clock changes; with ``skip`` it does not.
2. The clock goes back: the times between come twice. A fixed-time job runs at the ``first``, the
   ``second``, or ``both``.
3. A job whose minute or hour field begins with ``*`` follows elapsed time: it runs whenever the clock
   shows a matching time, be it for the second time, and never for a lost one.

Source of the rules: crontab(5) and cron(8) of Vixie cron and cronie.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from jobs.schedules.clockface import ClockFace
from jobs.schedules.fields import CronFields, read_fields
from jobs.schedules.zones import Stretch, stretch_at
from scheduler_project.kernel.clock import EPOCH, LATEST

EARLIEST = EPOCH
RULES_AS_OF = datetime(2027, 1, 1, tzinfo=UTC)
"""Where no clock may be read, a zone's rules are looked up as they are from here on."""
HORIZON = timedelta(days=100 * 366)
"""How far ahead a fire is looked for. The rarest dates there are, a 29 February on a given weekday, are
at most 40 years apart; what finds nothing in this time never will."""

_SECOND = timedelta(seconds=1)
_BEFORE_EARLIEST = EARLIEST - _SECOND
_LATEST_NAIVE = LATEST.replace(tzinfo=None)
_REACH = timedelta(days=3)
"""More than a wall-clock time can be away from its instant: an offset and a skipped day."""


class DstGap(StrEnum):
    RUN_AFTER = "runAfter"
    SKIP = "skip"


class DstOverlap(StrEnum):
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class DayMatch(StrEnum):
    OR = "or"
    AND = "and"


@dataclass(frozen=True, slots=True)
class CronRule:
    """All that decides when a cron schedule fires, apart from its start and end date.

    ``text`` is in normal form and known to be valid; rules that are equal share one evaluator.
    """

    text: str
    timezone: str = "UTC"
    dst_gap: DstGap = DstGap.RUN_AFTER
    dst_overlap: DstOverlap = DstOverlap.FIRST
    day_match: DayMatch = DayMatch.OR


@lru_cache(maxsize=4096)
def fields_of(text: str) -> CronFields:
    return read_fields(text)


@lru_cache(maxsize=8192)
def evaluator_of(rule: CronRule) -> Evaluator:
    """The evaluator that all schedules with this rule share."""
    return Evaluator(rule)


class Evaluator:
    """Finds the fires of one rule, and remembers the last answer.

    Between two fires the answer is the same for every instant, so ten thousand jobs that ask for what
    comes after their common fire cost one evaluation. ``evaluations`` counts the real ones.
    """

    def __init__(self, rule: CronRule) -> None:
        fields = fields_of(rule.text)
        self.face = ClockFace(fields, both_days=rule.day_match is DayMatch.AND)
        self.fixed = not fields.follows_elapsed_time
        self.evaluations = 0
        self.zone = rule.timezone
        self._overlap = rule.dst_overlap
        self._runs_after_gap = self.fixed and rule.dst_gap is DstGap.RUN_AFTER
        self._answer: tuple[datetime, datetime] | None = None

    def next_fire(self, after: datetime) -> datetime | None:
        """The first fire strictly later than ``after``; None where the next hundred years have none."""
        answer = self._answer
        if answer is not None and answer[0] <= after < answer[1]:
            return answer[1]
        fire = self._evaluate(after)
        if fire is not None:
            self._answer = (after, fire)
        return fire

    def _evaluate(self, after: datetime) -> datetime | None:
        self.evaluations += 1
        cursor = _next_second(max(after, _BEFORE_EARLIEST))
        horizon = min(cursor + HORIZON, _LATEST_NAIVE)
        while cursor < horizon:
            stretch = stretch_at(self.zone, cursor)
            fire = self._first_in(stretch, cursor)
            if fire is not None:
                return fire.replace(tzinfo=UTC) if fire < horizon else None
            cursor = self._continue_after(stretch, horizon)
        return None

    def _first_in(self, stretch: Stretch, cursor: datetime) -> datetime | None:
        if stretch.start >= cursor and self.makes_up_for_gap(stretch):
            return stretch.start
        low, high = self.bounds(stretch)
        found = self.face.first(max(low, cursor + stretch.offset), high)
        return None if found is None else found - stretch.offset

    def _continue_after(self, stretch: Stretch, horizon: datetime) -> datetime:
        """Where to look on: the stretch's end, or later where no clock shows a matching time for long."""
        shown_next = self.face.first(min(stretch.local_end, stretch.clock_after), horizon)
        return horizon if shown_next is None else max(stretch.end, shown_next - _REACH)

    def makes_up_for_gap(self, stretch: Stretch) -> bool:
        """Whether a time that was lost just before this stretch is run at its start."""
        return self._runs_after_gap and self.face.first(stretch.clock_before, stretch.local_start) is not None

    def bounds(self, stretch: Stretch) -> tuple[datetime, datetime]:
        """The wall-clock times of the stretch, without those that another pass of the clock runs."""
        low, high = stretch.local_start, stretch.local_end
        if self.fixed and self._overlap is DstOverlap.FIRST:
            low = max(low, stretch.clock_before)
        if self.fixed and self._overlap is DstOverlap.SECOND:
            high = min(high, stretch.clock_after)
        return low, high

    def count(self, after: datetime, until: datetime) -> int:
        """How many fires lie in (after, until]; the work grows with the months between the two."""
        total, cursor = 0, _next_second(max(after, _BEFORE_EARLIEST))
        end = _next_second(min(until, LATEST - _SECOND))
        while cursor < end:
            stretch = stretch_at(self.zone, cursor)
            total += self._count_in(stretch, cursor, min(stretch.end, end))
            cursor = stretch.end
        return total

    def _count_in(self, stretch: Stretch, cursor: datetime, end: datetime) -> int:
        low, high = self.bounds(stretch)
        low, high = max(low, cursor + stretch.offset), min(high, end + stretch.offset)
        total = self.face.count(low, high)
        if stretch.start < cursor or not self.makes_up_for_gap(stretch):
            return total
        names_start_too = self.face.first(low, low + _SECOND) is not None
        return total if names_start_too else total + 1


def _next_second(after: datetime) -> datetime:
    """The first whole second later than the instant; naive, UTC."""
    return after.astimezone(UTC).replace(tzinfo=None, microsecond=0) + _SECOND
