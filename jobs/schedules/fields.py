"""The fields of a cron expression, read to plain sets of numbers.

Five fields (minute, hour, day of month, month, day of week) or six (second first). A field is a
comma-separated list of ``*``, ``a``, ``a-b``, ``*/n``, ``a-b/n`` and ``a/n`` (from a to the end of the
range); months and weekdays may be named. Day of month also knows ``L`` (last day), ``L-n`` (n days before
it), ``nW`` (the weekday, Monday to Friday, nearest to day n, in the same month) and ``LW`` (the last such);
day of week knows ``n#k`` (the k-th of the month) and ``nL`` (the last of the month). ``?`` is ``*`` in the
day fields. Sunday is 0 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = {
    "JAN": 1,
    "FEB": 2,
    "MAR": 3,
    "APR": 4,
    "MAY": 5,
    "JUN": 6,
    "JUL": 7,
    "AUG": 8,
    "SEP": 9,
    "OCT": 10,
    "NOV": 11,
    "DEC": 12,
}
WEEKDAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}
LONGEST_TEXT = 500

_TERM = re.compile(r"(?:(\*)|([A-Z]{3}|\d{1,4})(?:-([A-Z]{3}|\d{1,4}))?)(?:/(\d{1,4}))?", re.ASCII)
_DAY_FROM_END = re.compile(r"L(?:-(\d{1,2}))?", re.ASCII)
_NEAREST_WEEKDAY = re.compile(r"(\d{1,2})W", re.ASCII)
_NTH_WEEKDAY = re.compile(r"([A-Z]{3}|\d)#(\d{1,2})", re.ASCII)
_LAST_WEEKDAY = re.compile(r"([A-Z]{3}|\d)L", re.ASCII)


@dataclass(frozen=True, slots=True)
class FieldKind:
    """What one field of the expression may hold."""

    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)
    extra: str = ""

    @property
    def allowed(self) -> str:
        words = f" or {next(iter(self.names))} to {list(self.names)[-1]}" if self.names else ""
        return f"{self.low} to {self.high}{words}, as a list (1,2), range (1-5), step (*/5) or *{self.extra}"


SECOND = FieldKind("second", 0, 59)
MINUTE = FieldKind("minute", 0, 59)
HOUR = FieldKind("hour", 0, 23)
DAY = FieldKind("day-of-month", 1, 31, extra="; also L, L-3, 15W and LW")
MONTH = FieldKind("month", 1, 12, MONTHS)
WEEKDAY = FieldKind("day-of-week", 0, 7, WEEKDAYS, extra="; also FRI#2 and FRIL")


@dataclass(frozen=True, slots=True)
class Values:
    """One numeric field: its text, and its values in rising order."""

    text: str
    values: tuple[int, ...]

    @property
    def starred(self) -> bool:
        """Whether it begins with ``*``, which is what counts as a wildcard, as in Vixie cron."""
        return self.text.startswith("*")


@dataclass(frozen=True, slots=True)
class MonthDays:
    """The day-of-month field. ``from_end`` counts back from the last day (0 is the last)."""

    text: str
    values: frozenset[int]
    from_end: frozenset[int]
    nearest_weekdays: frozenset[int]
    last_weekday: bool

    @property
    def starred(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True, slots=True)
class WeekDays:
    """The day-of-week field; Sunday is 0. ``nth`` holds (weekday, 1 to 5), ``last`` those with ``L``."""

    text: str
    values: frozenset[int]
    nth: frozenset[tuple[int, int]]
    last: frozenset[int]

    @property
    def starred(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True, slots=True)
class CronFields:
    """A whole expression; ``second`` is None where it has five fields (and then runs at second 0)."""

    second: Values | None
    minute: Values
    hour: Values
    day: MonthDays
    month: Values
    weekday: WeekDays

    @property
    def text(self) -> str:
        """The normal form: macros expanded, upper case, single blanks, ``*`` for ``?``."""
        parts = (self.second, self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(part.text for part in parts if part is not None)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether the minute or the hour field begins with ``*``: such a job ignores changes of the clock."""
        return self.minute.starred or self.hour.starred


class _Refusal(Exception):
    """Why one term of one field is not understood."""


def read_fields(text: str, *, field: str = "schedule") -> CronFields:
    """The expression's fields; InvalidValue names the field, the term and what is allowed there."""
    parts = _split(text, field)
    second = _read(SECOND, parts.pop(0), text, field) if len(parts) == 6 else None
    return CronFields(
        second=second,
        minute=_read(MINUTE, parts[0], text, field),
        hour=_read(HOUR, parts[1], text, field),
        day=_read_days(parts[2], text, field),
        month=_read(MONTH, parts[3], text, field),
        weekday=_read_weekdays(parts[4], text, field),
    )


def _split(text: str, field: str) -> list[str]:
    stripped = text.strip()
    if len(stripped) > LONGEST_TEXT:
        raise InvalidValue(f"a cron expression has at most {LONGEST_TEXT} characters", field=field)
    if stripped.startswith("@"):
        return _expand_macro(stripped, field).split()
    parts = stripped.split()
    if len(parts) not in (5, 6):
        raise InvalidValue(
            f"{shown(text)} has {len(parts)} fields: a cron expression has 5 (minute, hour, day-of-month, "
            "month, day-of-week), or 6 with the second first, or is one of " + ", ".join(MACROS),
            field=field,
        )
    return parts


def _expand_macro(text: str, field: str) -> str:
    if text.lower() not in MACROS:
        raise InvalidValue(f"{shown(text)} is not known: use one of {', '.join(MACROS)}", field=field)
    return MACROS[text.lower()]


def _read(kind: FieldKind, text: str, expression: str, field: str) -> Values:
    values: set[int] = set()
    for term in text.split(","):
        with _naming(kind, term, expression, field):
            values.update(_expand(kind, term.upper()))
    return Values(text.upper(), tuple(sorted(values)))


def _read_days(text: str, expression: str, field: str) -> MonthDays:
    text = "*" if text == "?" else text
    values: set[int] = set()
    from_end: set[int] = set()
    nearest: set[int] = set()
    for written in text.split(","):
        with _naming(DAY, written, expression, field):
            term = written.upper()
            if match := _DAY_FROM_END.fullmatch(term):
                from_end.add(_within(int(match[1] or 0), 0, 30))
            elif match := _NEAREST_WEEKDAY.fullmatch(term):
                nearest.add(_number(DAY, match[1]))
            elif term != "LW":
                values.update(_expand(DAY, term))
    text = text.upper()
    last_weekday = "LW" in text.split(",")
    return MonthDays(text, frozenset(values), frozenset(from_end), frozenset(nearest), last_weekday)


def _read_weekdays(text: str, expression: str, field: str) -> WeekDays:
    text = "*" if text == "?" else text
    values: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for written in text.split(","):
        with _naming(WEEKDAY, written, expression, field):
            term = written.upper()
            if match := _NTH_WEEKDAY.fullmatch(term):
                nth.add((_number(WEEKDAY, match[1]) % 7, _within(int(match[2]), 1, 5)))
            elif match := _LAST_WEEKDAY.fullmatch(term):
                last.add(_number(WEEKDAY, match[1]) % 7)
            else:
                values.update(value % 7 for value in _expand(WEEKDAY, term))
    return WeekDays(text.upper(), frozenset(values), frozenset(nth), frozenset(last))


@contextmanager
def _naming(kind: FieldKind, term: str, expression: str, field: str) -> Iterator[None]:
    """Turns a refusal of one term into an InvalidValue that names the field and what it may hold."""
    try:
        yield
    except _Refusal as refusal:
        raise InvalidValue(
            f"{shown(term)} in the {kind.name} field of {shown(expression)} {refusal}: "
            f"allowed is {kind.allowed}",
            field=field,
        ) from None


def _expand(kind: FieldKind, term: str) -> range:
    """The numbers that one plain term stands for."""
    match = _TERM.fullmatch(term)
    if match is None:
        raise _Refusal("is not understood")
    star, first, last, step = match.groups()
    low = kind.low if star else _number(kind, first)
    high = _end_of_range(kind, low, last, open_ended=bool(star or step))
    if low > high:
        raise _Refusal("runs backwards")
    if step is not None and int(step) == 0:
        raise _Refusal("has a step of 0")
    return range(low, high + 1, int(step or 1))


def _end_of_range(kind: FieldKind, low: int, last: str | None, *, open_ended: bool) -> int:
    if last is None:
        return kind.high if open_ended else low
    high = _number(kind, last)
    # FRI-SUN ends on the Sunday after: written as a name, it has only one number to be.
    return 7 if kind is WEEKDAY and last == "SUN" and low > 0 else high


def _number(kind: FieldKind, text: str) -> int:
    if text.isdigit():
        return _within(int(text), kind.low, kind.high)
    if text not in kind.names:
        raise _Refusal("is not understood")
    return kind.names[text]


def _within(number: int, low: int, high: int) -> int:
    if not low <= number <= high:
        raise _Refusal(f"is out of range ({low} to {high})")
    return number
