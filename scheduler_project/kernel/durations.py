"""Lengths of time as people write them: ``90s``, ``5m``, ``1h30m``, ``250ms``, or whole seconds."""

from __future__ import annotations

import re
from datetime import timedelta

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

UNITS: dict[str, timedelta] = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
LONGEST = timedelta(days=3660)
_TOKEN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|[wdhms])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_TOKEN.pattern})+", re.ASCII)
_ALLOWED = "write it as a number and a unit (ms, s, m, h, d, w), for example 90s, 5m or 1h30m"


def parse_duration(value: object, *, field: str = "", minimum: timedelta = timedelta(0)) -> timedelta:
    """The length of time that ``value`` states; a bare number is seconds.

    Raises InvalidValue, naming the value, for anything else, for less than ``minimum``
    and for more than ten years.
    """
    length = _read(value, field)
    if not minimum <= length <= LONGEST:
        raise InvalidValue(
            f"{shown(value)} is not between {format_duration(minimum)} and {format_duration(LONGEST)}",
            field=field,
        )
    return length


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
    try:
        return sum((float(number) * UNITS[unit] for number, unit in _TOKEN.findall(text)), timedelta(0))
    except OverflowError:  # longer than a timedelta can say
        return timedelta.max


def format_duration(length: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back as the same length (to the millisecond)."""
    millis = length // timedelta(milliseconds=1)
    if millis < 0:
        return "-" + format_duration(-length)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms"):
        size = UNITS[unit] // timedelta(milliseconds=1)
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
