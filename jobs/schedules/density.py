"""When a schedule fires in a span of time, all at once: what a calendar is made of.

``next_fire`` finds one fire; a week of a schedule of every five minutes has two thousand. Here the times of a
day are multiplied out once and laid over the days that match, stretch by stretch of the zone's clock, by the
rules of ``evaluation``. A schedule that fires more than once a minute gives counts and no times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from jobs.schedules.clockface import ClockFace
from jobs.schedules.evaluation import Evaluator, evaluator_of
from jobs.schedules.kinds import Cron, Every, Schedule
from jobs.schedules.zones import stretch_at
from scheduler_project.kernel.clock import MICROSECOND

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_MINUTE_US = 60_000_000
_DAY_US = 86_400_000_000
_CROWDED_S = 60


@dataclass(frozen=True, slots=True)
class Fires:
    """Of one schedule, from the begin of a span: ``times`` in microseconds, rising, or, of what fires more
    than once a minute, ``crowded``: how often in which minute."""

    times: list[int] = field(default_factory=list)
    crowded: dict[int, int] = field(default_factory=dict)

    def per_minute(self) -> dict[int, int]:
        """How often in which minute of the span; a minute without a fire is left out."""
        return self.crowded or Counter(time // _MINUTE_US for time in self.times)


def fires_in(schedule: Schedule, since: datetime, minutes: int) -> Fires:
    """The fires in [since, since + minutes); ``since`` is a whole second, aware."""
    if isinstance(schedule, Cron):
        return _of_cron(schedule, since, minutes)
    if isinstance(schedule, Every):
        return _of_interval(schedule, since, minutes)
    fire = schedule.first_fire(since)
    within = fire is not None and since <= fire < since + timedelta(minutes=minutes)
    return Fires([(fire - since) // MICROSECOND]) if fire is not None and within else Fires()


def _of_cron(schedule: Cron, since: datetime, minutes: int) -> Fires:
    until = since + timedelta(minutes=minutes)
    low = since if schedule.span.start is None else max(since, schedule.span.start)
    high = until if schedule.span.end is None else min(until, schedule.span.end + MICROSECOND)
    evaluator = evaluator_of(schedule.rule)
    times = list(_times(evaluator, _naive(low), _naive(high), _naive(since)))
    if len(evaluator.face.times.seconds) > 1:
        return Fires(crowded=dict(Counter(time // _MINUTE_US for time in times)))
    return Fires(times)


def _naive(instant: datetime) -> datetime:
    """In UTC; a cron schedule fires at whole seconds, so a part of one is rounded up."""
    whole = instant.astimezone(UTC).replace(tzinfo=None)
    return whole if not whole.microsecond else whole.replace(microsecond=0) + _SECOND


def _times(evaluator: Evaluator, low: datetime, high: datetime, since: datetime) -> Iterator[int]:
    """The fires in [low, high), in microseconds from ``since``, rising."""
    cursor = low
    while cursor < high:
        stretch = stretch_at(evaluator.zone, cursor)
        first, last = evaluator.bounds(stretch)
        first, last = max(first, cursor + stretch.offset), min(last, high + stretch.offset)
        names_start_too = evaluator.face.first(first, first + _SECOND) is not None
        if stretch.start >= cursor and not names_start_too and evaluator.makes_up_for_gap(stretch):
            yield (stretch.start - since) // MICROSECOND
        yield from _on_the_face(evaluator.face, first, last, since + stretch.offset)
        cursor = stretch.end


def _on_the_face(face: ClockFace, low: datetime, high: datetime, origin: datetime) -> Iterator[int]:
    """The matching wall-clock times in [low, high), in microseconds from ``origin``."""
    day = low.replace(hour=0, minute=0, second=0)
    first, last = (low - origin) // MICROSECOND, (high - origin) // MICROSECOND
    while day < high:
        if day.day in face.days_of(day.year, day.month):
            start = (day - origin) // MICROSECOND
            times = face.times.in_micros
            if start >= first and start + _DAY_US <= last:
                yield from (start + time for time in times)
            else:
                yield from (start + time for time in times if first <= start + time < last)
        day += _DAY


def _of_interval(schedule: Every, since: datetime, minutes: int) -> Fires:
    """Counted in whole microseconds from ``since``, by arithmetic."""
    interval = schedule.interval // MICROSECOND
    anchor = ((schedule.anchor or schedule.span.start or since) - since) // MICROSECOND
    first = 0 if schedule.span.start is None else max(0, (schedule.span.start - since) // MICROSECOND)
    end = minutes * _MINUTE_US
    if schedule.span.end is not None:
        end = min(end, (schedule.span.end - since) // MICROSECOND + 1)
    least = 0 if schedule.span.start is not None else 1
    begin = max(-((anchor - first) // interval), least) * interval + anchor
    if schedule.interval.total_seconds() >= _CROWDED_S:
        return Fires(list(range(begin, end, interval)))
    return Fires(crowded=dict(_per_minute(begin, end, interval)))


def _per_minute(begin: int, end: int, interval: int) -> Iterator[tuple[int, int]]:
    for minute in range(begin // _MINUTE_US, -(-end // _MINUTE_US)):
        low, high = max(begin, minute * _MINUTE_US), min(end, (minute + 1) * _MINUTE_US)
        count = len(range(begin + -(-(low - begin) // interval) * interval, high, interval))
        if count:
            yield minute, count
