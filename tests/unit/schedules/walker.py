"""A second implementation of section 7's rules, slow and plain; it shares no code with the first.

It walks every minute of UTC, reads the zone's clock at each, and asks of each reading whether the expression
names it. Days on which the clock showed each of the 1,440 minutes once, in order, are then treated alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
NAMES = {
    name: str(number)
    for names, first in (
        ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
        ("SUN MON TUE WED THU FRI SAT", 0),
    )
    for number, name in enumerate(names.split(), first)
}


@dataclass
class Reading:
    """One minute: what the clock shows, at which instant, and which readings were left out just before it."""

    shown: datetime
    instant: datetime
    lost: list[datetime]
    changed: bool
    """Whether it does not follow on what the clock showed a minute before."""


@dataclass
class Timeline:
    """What a zone's clock shows between two instants."""

    plain_days: dict[date, datetime]
    """Dates of which the clock shows each minute once, in order, with the instant at which each begins."""
    unusual: list[Reading]
    """All minutes of all other dates."""
    occurrences: dict[datetime, list[datetime]]
    """How often, and when, each of their readings comes."""

    @property
    def changes(self) -> list[Reading]:
        """The first minutes after each change of the clock."""
        return [reading for reading in self.unusual if reading.changed]


def walk(zone: str, first: datetime, last: datetime) -> Timeline:
    """Reads the zone's clock at every minute of [first, last)."""
    shown: list[int] = []
    with files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as stream:
        clock = ZoneInfo.from_file(stream, key=zone)  # the pinned rules: the host's may be others
    instant = first
    while instant < last:
        local = instant.astimezone(clock)
        shown.append(local.toordinal() * 1440 + local.hour * 60 + local.minute)
        instant += MINUTE
    plain = {shown[i] // 1440: i for i in _beginnings_of_plain_days(shown)}
    unusual = [
        Reading(_reading(now), first + i * MINUTE, _lost_between(shown[i - 1], now), shown[i - 1] + 1 != now)
        for i, now in enumerate(shown)
        if shown[0] // 1440 < now // 1440 < shown[-1] // 1440  # the days at both ends are not whole
        and now // 1440 not in plain
    ]
    occurrences: dict[datetime, list[datetime]] = defaultdict(list)
    for reading in unusual:
        occurrences[reading.shown].append(reading.instant)
    plain_days = {date.fromordinal(day): first + i * MINUTE for day, i in plain.items()}
    return Timeline(plain_days, unusual, occurrences)


def _beginnings_of_plain_days(shown: list[int]) -> list[int]:
    minutes_of = Counter(now // 1440 for now in shown)
    return [
        i
        for i, now in enumerate(shown)
        if now % 1440 == 0
        and minutes_of[now // 1440] == 1440
        and shown[max(0, i - 1) : i + 1440] == list(range(now - min(1, i), now + 1440))
    ]


def _reading(minutes: int) -> datetime:
    return datetime.combine(date.fromordinal(minutes // 1440), time.min) + minutes % 1440 * MINUTE


def _lost_between(before: int, after: int) -> list[datetime]:
    return [_reading(minutes) for minutes in range(before + 1, after)]


class Expression:
    """An expression as a question to one reading of the clock: does it name this?"""

    def __init__(self, text: str, day_match: str = "or") -> None:
        self.text = text
        fields = MACROS.get(text.strip().lower(), text).upper().replace("?", "*").split()
        self.seconds = fields.pop(0) if len(fields) == 6 else "0"
        self.minute, self.hour, self.day, self.month, self.weekday = fields
        self.day_match = day_match

    @property
    def wildcard(self) -> bool:
        return self.minute[0] == "*" or self.hour[0] == "*"

    def names(self, shown: datetime) -> bool:
        return self.names_time(shown) and self.names_date(shown.date())

    def names_time(self, shown: datetime) -> bool:
        return (shown.hour, shown.minute) in self.times

    @cached_property
    def times(self) -> set[tuple[int, int]]:
        return {
            (hour, minute)
            for hour in range(24)
            for minute in range(60)
            if number_in(minute, self.minute, 0, 59) and number_in(hour, self.hour, 0, 23)
        }

    def names_date(self, day: date) -> bool:
        if not number_in(day.month, self.month, 1, 12):
            return False
        by_day = any(day_named(day, term) for term in self.day.split(","))
        by_weekday = any(weekday_named(day, term) for term in self.weekday.split(","))
        if self.day_match == "and" or self.day[0] == "*" or self.weekday[0] == "*":
            return by_day and by_weekday
        return by_day or by_weekday

    @cached_property
    def seconds_named(self) -> list[timedelta]:
        return [timedelta(seconds=s) for s in range(60) if number_in(s, self.seconds, 0, 59)]


@lru_cache(maxsize=100_000)
def number_in(number: int, text: str, low: int, high: int) -> bool:
    return any(_number_in_term(number, term, low, high) for term in text.split(","))


def _number_in_term(number: int, term: str, low: int, high: int) -> bool:
    span, _, step = term.partition("/")
    begin, dash, end = span.partition("-")
    begin, end = NAMES.get(begin, begin), NAMES.get(end, end)
    if begin == "*":
        begin, end = str(low), str(high)
    elif not dash:
        end = str(high) if step else begin
    elif high == 7 and end == "0" and begin != "0":
        end = "7"
    return int(begin) <= number <= int(end) and (number - int(begin)) % int(step or 1) == 0


def day_named(day: date, term: str) -> bool:
    last_of_month = (day.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    if term == "LW":
        return day == _nearest_weekday(last_of_month)
    if term.endswith("W"):
        wanted = int(term[:-1])
        return wanted <= last_of_month.day and day == _nearest_weekday(day.replace(day=wanted))
    if term.startswith("L"):
        return day == last_of_month - int(term[2:] or 0) * DAY
    return number_in(day.day, term, 1, 31)


def _nearest_weekday(day: date) -> date:
    for distance in (0, -1, 1, -2, 2):
        near = day + distance * DAY
        if near.month == day.month and near.weekday() < 5:
            return near
    raise AssertionError(day)


def weekday_named(day: date, term: str) -> bool:
    if "#" in term:
        weekday, _, nth = term.partition("#")
        same = weekday_named(day, weekday)
        return same and (day - (int(nth) - 1) * DAY).month == day.month and (day.day - 1) // 7 == int(nth) - 1
    if term.endswith("L"):
        return weekday_named(day, term[:-1]) and (day + 7 * DAY).month != day.month
    sunday_first = day.isoweekday() % 7
    return number_in(sunday_first, term, 0, 7) or (sunday_first == 0 and number_in(7, term, 0, 7))


def times_of_day(expression: Expression) -> list[timedelta]:
    """How much later than midnight it fires, on a date that it names."""
    return _times_of_day(expression.text)


@lru_cache(maxsize=8)
def _times_of_day(text: str) -> list[timedelta]:
    expression = Expression(text)
    midnight = datetime.combine(date(2000, 1, 1), time.min)
    minutes = [i * MINUTE for i in range(1440) if expression.names_time(midnight + i * MINUTE)]
    return [minute + second for minute in minutes for second in expression.seconds_named]


def fires_on_plain_days(expression: Expression, timeline: Timeline) -> dict[datetime, list[timedelta]]:
    """For the beginning of each plain day: how much later the expression fires in it."""
    times = times_of_day(expression)
    return {begin: times if expression.names_date(day) else [] for day, begin in timeline.plain_days.items()}


def fires_on_unusual_days(
    expression: Expression, timeline: Timeline, gap: str, overlap: str
) -> list[datetime]:
    found: set[datetime] = set()
    for reading in timeline.unusual:
        if expression.names(reading.shown):
            found.update(_at_reading(expression, reading, timeline, overlap))
        if gap == "runAfter" and not expression.wildcard and any(map(expression.names, reading.lost)):
            found.add(reading.instant)
    return sorted(found)


def _at_reading(expression: Expression, reading: Reading, timeline: Timeline, overlap: str) -> list[datetime]:
    passes = timeline.occurrences[reading.shown]
    wanted = {"first": passes[:1], "second": passes[-1:], "both": passes}[overlap]
    if not expression.wildcard and reading.instant not in wanted:
        return []
    return [reading.instant + second for second in expression.seconds_named]
