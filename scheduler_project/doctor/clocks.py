"""The clocks of this host, of PostgreSQL and of Redis against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.db import connection
from django.db.utils import Error as DatabaseError

from executions.store import StoreUnavailable, default_store
from scheduler_project.doctor.findings import Finding, failure, ok, unknown, warning
from scheduler_project.kernel.clock import from_millis, utcnow

NOTICEABLE = timedelta(milliseconds=500)
TOO_MUCH = timedelta(seconds=5)
_TODO = "Let NTP set the clocks of both hosts (chronyc tracking, timedatectl); runs are due by Redis' clock."


def check_clocks() -> Iterator[Finding]:
    yield from _on("redis", "Redis", lambda: from_millis(default_store().now_ms()))
    yield from _on("database", "PostgreSQL", _database_time)


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found


def _on(check: str, name: str, ask: Callable[[], datetime]) -> Iterator[Finding]:
    try:
        ask()  # the connection is made, so that the next answer takes no longer than its way
        yield compared(check, name, ask)
    except (StoreUnavailable, DatabaseError):
        yield unknown(check, f"{name} does not say what time it is.")


def compared(check: str, name: str, ask: Callable[[], datetime]) -> Finding:
    """The other clock against this host's, in the middle of the question's way."""
    before = utcnow()
    there = ask()
    after = utcnow()
    way = (after - before) / 2
    skew = there - (before + way)
    sure = max(timedelta(0), abs(skew) - way)  # so much cannot be explained by the way
    where = "before" if skew > timedelta(0) else "behind"
    told = f"{name} is {abs(skew).total_seconds():.3f} s {where} this host."
    if sure > TOO_MUCH:
        return failure(check, told, _TODO)
    return warning(check, told, _TODO) if sure > NOTICEABLE else ok(check, told)
