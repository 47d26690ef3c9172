"""How commands write instants and lengths of time for people; JSON has them as REST does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

LOCAL_ZONE = Path("/etc/localtime")
NONE = "-"


def machine_zone() -> tzinfo:
    """The zone of this machine; Django has put UTC in its place in TZ. UTC where there is none."""
    try:
        with LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError):
        return UTC


def shown_time(instant: datetime | None, zone: tzinfo = UTC) -> str:
    """``2026-11-30 14:05:09Z``, or with the offset of another zone; whole seconds."""
    if instant is None:
        return NONE
    written = instant.astimezone(zone).replace(microsecond=0)
    return written.isoformat(" ").removesuffix("+00:00") + ("Z" if not written.utcoffset() else "")


def shown_seconds(seconds: float | None) -> str:
    """``0 ms``, ``71 ms``, ``1.4 s``, ``12 s``, ``3 min``, ``5 h``, ``2 d``: short, for a column."""
    if seconds is None:
        return NONE
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if abs(seconds) < 10 else f"{seconds:.0f} s"


def since(instant: datetime | None, now: datetime) -> float | None:
    """Seconds from ``instant`` to ``now``."""
    return None if instant is None else (now - instant) / timedelta(seconds=1)
