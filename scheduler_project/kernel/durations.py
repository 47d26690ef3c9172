"""Lengths of time as people write them: ``90s``, ``5m``, ``1h30m``, ``250ms``, or whole seconds."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

MILLISECOND = timedelta(milliseconds=1)
UNITS: dict[str, timedelta] = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": MILLISECOND,
}
LONGEST = timedelta(days=3660)
_TOKEN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|[wdhms])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_TOKEN.pattern})+", re.ASCII)
_ALLOWED = "write it as a number and a unit (ms, s, m, h, d, w), for example 90s, 5m or 1h30m"


def parse_duration(value: object, *, field: str = "", minimum: timedelta = timedelta(0)) -> timedelta:
    """The length of time that ``value`` states; a bare number is seconds.

    Raises InvalidValue, naming the value, for anything else, for less than ``minimum``, for more than
    ten years, and for parts of a millisecond: ``format_duration`` gives each length as it is.
    """
    length = _read(value, field)
    if not minimum <= length <= LONGEST:
        raise InvalidValue(
            f"{shown(value)} is not between {format_duration(minimum)} and {format_duration(LONGEST)}",
            field=field,
        )
    if length % MILLISECOND:
        raise _too_fine(value, field)
    return length


def _too_fine(value: object, field: str) -> InvalidValue:
    return InvalidValue(f"{shown(value)} is too fine: lengths are whole milliseconds", field=field)


def _read(value: object, field: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**10:
        return timedelta(seconds=value)
    text = value.strip().lower().replace(" ", "") if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return timedelta(seconds=int(text))
    if not _WHOLE.fullmatch(text):
        raise InvalidValue(f"{shown(value)} is not a length of time: {_ALLOWED}", field=field)
    millis = sum(
        (Fraction(number) * (UNITS[unit] // MILLISECOND) for number, unit in _TOKEN.findall(text)), Fraction()
    )
    if millis.denominator != 1:
        raise _too_fine(value, field)
    try:
        return timedelta(milliseconds=int(millis))
    except OverflowError:  # longer than a timedelta can say
        return timedelta.max


def format_duration(length: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back as the same length (to the millisecond)."""
    millis = length // MILLISECOND
    if millis < 0:
        return "-" + format_duration(-length)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms"):
        size = UNITS[unit] // MILLISECOND
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
