"""Which wall-clock times an expression names, on a calendar without zones.

Times here are naive datetimes of whole seconds; `evaluation` maps them to instants.
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from datetime import datetime
from functools import cached_property

from jobs.schedules.fields import CronFields, MonthDays, WeekDays

_MONTHS_KEPT = 1500


class TimesOfDay:
    """The times that an expression names in a day that it names."""

    def __init__(self, fields: CronFields) -> None:
        self.hours = fields.hour.values
        self.minutes = fields.minute.values
        self.seconds = fields.second.values if fields.second else (0,)
        self.count = len(self.hours) * len(self.minutes) * len(self.seconds)
        self.earliest = (self.hours[0], self.minutes[0], self.seconds[0])

    @cached_property
    def in_micros(self) -> list[int]:
        """All of them, in microseconds from midnight."""
        return [
            (hour * 3600 + minute * 60 + second) * 1_000_000
            for hour in self.hours
            for minute in self.minutes
            for second in self.seconds
        ]

    def at_or_after(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """The first time of day that is not before the given one; None where the day has no more."""
        i = bisect_left(self.hours, hour)
        if i < len(self.hours) and self.hours[i] == hour:
            within = self._in_hour(minute, second)
            if within is not None:
                return (hour, *within)
            i += 1
        return (self.hours[i], *self.earliest[1:]) if i < len(self.hours) else None

    def _in_hour(self, minute: int, second: int) -> tuple[int, int] | None:
        i = bisect_left(self.minutes, minute)
        if i < len(self.minutes) and self.minutes[i] == minute:
            j = bisect_left(self.seconds, second)
            if j < len(self.seconds):
                return minute, self.seconds[j]
            i += 1
        return (self.minutes[i], self.seconds[0]) if i < len(self.minutes) else None

    def count_before(self, hour: int, minute: int, second: int) -> int:
        """How many of the day's times are before the given one."""
        total, per_minute = 0, len(self.seconds)
        i = bisect_left(self.hours, hour)
        total += i * len(self.minutes) * per_minute
        if i == len(self.hours) or self.hours[i] != hour:
            return total
        j = bisect_left(self.minutes, minute)
        total += j * per_minute
        if j == len(self.minutes) or self.minutes[j] != minute:
            return total
        return total + bisect_left(self.seconds, second)


class ClockFace:
    """The wall-clock times of one expression. ``both_days``: day of month AND day of week must match."""

    def __init__(self, fields: CronFields, *, both_days: bool) -> None:
        self.times = TimesOfDay(fields)
        self._months = frozenset(fields.month.values)
        self._day = fields.day
        self._weekday = fields.weekday
        self._both = both_days or fields.day.starred or fields.weekday.starred
        self._kept: dict[tuple[int, int], tuple[int, ...]] = {}

    def days_of(self, year: int, month: int) -> tuple[int, ...]:
        """The days of the month that match, rising; kept, because neighbours ask for the same month."""
        days = self._kept.get((year, month))
        if days is None:
            if len(self._kept) >= _MONTHS_KEPT:
                self._kept.clear()
            days = self._kept[year, month] = self._match_days(year, month)
        return days

    def _match_days(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self._months:
            return ()
        by_day = match_month_days(self._day, year, month)
        by_weekday = match_weekdays(self._weekday, year, month)
        return tuple(sorted(by_day & by_weekday if self._both else by_day | by_weekday))

    def first(self, low: datetime, high: datetime) -> datetime | None:
        """The first matching time in [low, high)."""
        if low >= high:
            return None
        days = self.days_of(low.year, low.month)
        i = bisect_left(days, low.day)
        if i < len(days) and days[i] == low.day:
            time = self.times.at_or_after(low.hour, low.minute, low.second)
            if time is not None:
                found = datetime(low.year, low.month, low.day, *time)  # noqa: DTZ001 - wall-clock time
                return found if found < high else None
            i += 1
        return self._on_later_day(low.year, low.month, i, high)

    def _on_later_day(self, year: int, month: int, i: int, high: datetime) -> datetime | None:
        days = self.days_of(year, month)
        while i >= len(days):
            year, month = _following(year, month)
            if (year, month) > (high.year, high.month):
                return None
            days, i = self.days_of(year, month), 0
        found = datetime(year, month, days[i], *self.times.earliest)  # noqa: DTZ001 - wall-clock time
        return found if found < high else None

    def count(self, low: datetime, high: datetime) -> int:
        """How many matching times lie in [low, high); the work grows with the months, not with the times."""
        if low >= high:
            return 0
        total = self._count_before(high) - self._count_before(low)
        year, month = low.year, low.month
        while (year, month) < (high.year, high.month):
            total += len(self.days_of(year, month)) * self.times.count
            year, month = _following(year, month)
        return total

    def _count_before(self, moment: datetime) -> int:
        """How many matching times of the moment's month are before it."""
        days = self.days_of(moment.year, moment.month)
        i = bisect_left(days, moment.day)
        whole_days = i * self.times.count
        if i == len(days) or days[i] != moment.day:
            return whole_days
        return whole_days + self.times.count_before(moment.hour, moment.minute, moment.second)


def match_month_days(rule: MonthDays, year: int, month: int) -> set[int]:
    """The days of this month that the day-of-month field names."""
    _, last = monthrange(year, month)
    days = {day for day in rule.values if day <= last}
    days |= {last - back for back in rule.from_end if back < last}
    days |= {_nearest_weekday(year, month, day) for day in rule.nearest_weekdays if day <= last}
    if rule.last_weekday:
        days.add(_nearest_weekday(year, month, last))
    return days


def match_weekdays(rule: WeekDays, year: int, month: int) -> set[int]:
    """The days of this month that the day-of-week field names."""
    first_weekday, last = monthrange(year, month)
    days: set[int] = set()
    for weekday in range(7):
        first = 1 + (weekday - 1 - first_weekday) % 7
        all_of_them = range(first, last + 1, 7)
        if weekday in rule.values:
            days.update(all_of_them)
        if weekday in rule.last:
            days.add(all_of_them[-1])
        days.update(all_of_them[k - 1] for day, k in rule.nth if day == weekday and k <= len(all_of_them))
    return days


def _nearest_weekday(year: int, month: int, day: int) -> int:
    """The day from Monday to Friday that is nearest to ``day`` without leaving the month."""
    first_weekday, last = monthrange(year, month)
    weekday = (first_weekday + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < last else day - 2
    return day


def _following(year: int, month: int) -> tuple[int, int]:
    return (year, month + 1) if month < 12 else (year + 1, 1)
