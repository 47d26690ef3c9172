"""Time zones, and the stretches in which a zone's clock runs evenly.

Zones are read from the pinned tzdata package alone, never from the host, so that every machine of an
installation knows the same rules, and one without zone files works.

Instants here are naive datetimes in UTC, wall-clock times naive datetimes of the zone.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

PROBE = timedelta(days=3)
"""Two changes of one zone are never closer: since 1970 the closest pair in tzdata is a week apart."""
MARGIN = timedelta(days=40)


@cache
def zone_names() -> frozenset[str]:
    """The names of all IANA zones that the tzdata package has."""
    names = (files("tzdata") / "zones").read_text(encoding="ascii").split()
    return frozenset(names) - {"Factory"}


def check_zone(name: object, *, field: str = "timezone") -> str:
    """The name, if it is an IANA zone; otherwise InvalidValue, with the names that are near it."""
    if isinstance(name, str) and name in zone_names():
        return name
    near = _near_names(name) if isinstance(name, str) else []
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise InvalidValue(
        f"{shown(name)} is not a time zone: use an IANA name such as Europe/Berlin or UTC{hint}", field=field
    )


def _near_names(name: str) -> list[str]:
    by_lower_case = {known.lower(): known for known in zone_names()}
    return [by_lower_case[near] for near in get_close_matches(name[:100].lower(), by_lower_case, n=2)]


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """The zone of that name; the name must be one of ``zone_names``."""
    entry = files("tzdata") / "zoneinfo"
    for part in name.split("/"):
        entry = entry / part
    with entry.open("rb") as stream:
        return ZoneInfo.from_file(stream, key=name)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the zone's offset stays the same: [start, end), instants.

    ``local_start`` and ``local_end`` are what the clock shows at its two ends by its own offset;
    ``clock_before`` is what the clock would have shown at ``start`` had it not been changed there, and
    ``clock_after`` what it shows at ``end``, after the change there. Where a stretch was cut off without
    a change of the clock, they equal ``local_start`` and ``local_end``.
    """

    start: datetime
    end: datetime
    offset: timedelta
    local_start: datetime
    local_end: datetime
    clock_before: datetime
    clock_after: datetime


def stretch_at(zone: str, instant: datetime) -> Stretch:
    """The stretch that holds the instant."""
    starts, stretches = _stretches_around(zone, instant.year)
    return stretches[bisect_right(starts, instant) - 1]


@lru_cache(maxsize=4096)
def _stretches_around(zone: str, year: int) -> tuple[list[datetime], list[Stretch]]:
    """All stretches that touch the year. They are looked for with a margin on both sides, so that a
    change near the turn of the year is seen whole from either side of it."""
    first, last = datetime(year, 1, 1) - MARGIN, datetime(year + 1, 1, 1) + MARGIN  # noqa: DTZ001
    edges = [first, *_changes(load_zone(zone), first, last), last]
    offsets = [offset_at(load_zone(zone), edge) for edge in edges[:-1]]
    before, after = [offsets[0], *offsets[:-1]], [*offsets[1:], offsets[-1]]
    stretches = [
        Stretch(start, end, offset, start + offset, end + offset, start + offset_before, end + offset_after)
        for (start, end), offset, offset_before, offset_after in zip(
            pairwise(edges), offsets, before, after, strict=True
        )
    ]
    return edges[:-1], stretches


def _changes(zone: ZoneInfo, first: datetime, last: datetime) -> list[datetime]:
    """The instants in (first, last) at which the offset changes."""
    changes: list[datetime] = []
    low, offset = first, offset_at(zone, first)
    while low < last:
        high = min(low + PROBE, last)
        offset_then = offset_at(zone, high)
        if offset_then != offset:
            changes.append(_change_between(zone, low, high))
        low, offset = high, offset_then
    return [change for change in changes if change < last]


def _change_between(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The second at which the offset of ``low`` ends; by halving."""
    offset = offset_at(zone, low)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        if offset_at(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    """What the zone's clock is ahead of UTC at the (naive, UTC) instant."""
    offset = instant.replace(tzinfo=UTC).astimezone(zone).utcoffset()
    return timedelta(0) if offset is None else offset
