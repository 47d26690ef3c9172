"""What happened in each minute, counted while the history is written, so that no chart reads it.

The statement that appends events (sql/history.sql) counts those that are new:

    due         runs, in the minute for which they were due (jitter not added), once they were sent
    started     attempts; a container that was taken up again does not start
    completed   runs that ended well
    failed      attempts that failed or were lost, with those of which another attempt followed
    undone      the latter: ``failed`` less these is how many runs ended abnormally
    cancelled   runs
    skipped     rows of runs that were not to run; each may stand for many fires
    lateness    first attempts, by how long after it was due they started

The lateness lies in buckets, so that the percentiles of any span can be told from the sums of its
minutes, to the width of a bucket. Counts are statements about events: where the two differ, a run's row is
right and the count is not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection, transaction

from executions.queries import HISTORY

BOUNDS_S = (
    0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0,
    10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
)  # fmt: skip
"""Where the buckets of lateness meet, in seconds. What was counted before is read by them: add at the end."""
LATE_S = 1.0
"""What starts later than this after it was due is counted as late with its job."""
MINUTE = timedelta(minutes=1)
MINUTES_KEPT = timedelta(days=8)
_FOLDED_AFTER = timedelta(minutes=10)
_FOLDED_WITHIN = timedelta(days=1)


class Tally(StrEnum):
    DUE = "due"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    UNDONE = "undone"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    LATENESS = "lateness"


@dataclass(slots=True)
class Counts:
    """The counts of a span of time. ``lateness``: how many first attempts, by bucket."""

    due: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    undone: int = 0
    cancelled: int = 0
    skipped: int = 0
    lateness: dict[int, int] = field(default_factory=dict)

    @property
    def abnormal(self) -> int:
        """Runs that ended abnormally; an attempt that is to be followed may be among them for a moment."""
        return max(0, self.failed - self.undone)

    def late(self, share: float) -> float | None:
        """The lateness in seconds that ``share`` (0 to 1) of the starts did not exceed; None without any."""
        return percentile(self.lateness, share)

    def add(self, what: str, bucket: int, count: int) -> None:
        if what == Tally.LATENESS:
            self.lateness[bucket] = self.lateness.get(bucket, 0) + count
        else:
            setattr(self, what, getattr(self, what) + count)


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """By buckets of BOUNDS_S, in seconds; within a bucket its values are taken to lie evenly.

    What is beyond the last bound counts as the last bound. None where the buckets are empty.
    """
    rank = share * sum(buckets.values())
    if not rank:
        return None
    below = 0
    for bucket in sorted(buckets):
        count = buckets[bucket]
        if below + count >= rank:
            low = BOUNDS_S[bucket - 1] if bucket else 0.0
            high = BOUNDS_S[min(bucket, len(BOUNDS_S) - 1)]
            return round(low + (high - low) * (rank - below) / count, 4)
        below += count
    raise AssertionError("the rank is at most the sum")


def bucket_of(late_s: float) -> int:
    """The bucket of a lateness in seconds, as the database finds it."""
    return bisect_right(BOUNDS_S, late_s)


def minute_of(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def counted(since: datetime, until: datetime, teams: Iterable[int] | None) -> dict[datetime, Counts]:
    """The counts of each minute in [since, until) in which something happened. ``teams``: None for all."""
    found: dict[datetime, Counts] = defaultdict(Counts)
    parameters = {"since": since, "until": until, "teams": None if teams is None else sorted(teams)}
    with connection.cursor() as cursor:
        cursor.execute(HISTORY["minutes"], parameters)
        for minute, what, bucket, count in cursor.fetchall():
            found[minute].add(what, bucket, int(count))
    return dict(found)


def together(counts: Iterable[Counts]) -> Counts:
    """The counts of a longer span from those of its minutes."""
    total = Counts()
    for item in counts:
        for what in Tally:
            if what is not Tally.LATENESS:
                total.add(what, 0, getattr(item, what))
        for bucket, count in item.lateness.items():
            total.add(Tally.LATENESS, bucket, count)
    return total


def tidy(now: datetime, *, retention: timedelta) -> None:
    """Put the rows of several connections together, and drop what is too old. Idempotent."""
    before = minute_of(now - _FOLDED_AFTER)
    with transaction.atomic():
        _run("fold_minutes", {"since": before - _FOLDED_WITHIN, "before": before})
        _run("forget_minutes", [now - min(retention, MINUTES_KEPT)])
        _run("forget_trouble", [now - min(retention, MINUTES_KEPT)])


def _run(name: str, parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(HISTORY[name], parameters)
