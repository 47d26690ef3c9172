"""Many fires of a schedule at once: listing them, counting them, spreading them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, takewhile
from uuid import UUID

from jobs.schedules.evaluation import evaluator_of
from jobs.schedules.kinds import Cron, Every, Schedule
from scheduler_project.kernel.clock import MICROSECOND
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidValue

_SECOND = timedelta(seconds=1)


def preview_fires(schedule: Schedule, created: datetime, count: int) -> list[datetime]:
    """The first ``count`` fires of a job created then; the same instants that it will be run at."""
    return list(islice(fires_of_new(schedule, created), count))


def fires_of_new(schedule: Schedule, created: datetime) -> Iterator[datetime]:
    """The fires of a job created then, one by one."""
    anchored = schedule.anchored(created)
    first = anchored.first_fire(created)
    if first is not None:
        yield first
        yield from fires_after(anchored, first)


def fires_after(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """The fires later than ``after``, one by one; without an end where the schedule has none."""
    fire = schedule.next_fire(after)
    while fire is not None:
        yield fire
        fire = schedule.next_fire(fire)


def fires_between(schedule: Schedule, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The first ``limit`` fires in (after, until]."""
    return list(islice(takewhile(lambda fire: fire <= until, fires_after(schedule, after)), limit))


def count_fires(schedule: Schedule, after: datetime, until: datetime) -> int:
    """How many fires lie in (after, until].

    ``every`` is arithmetic. ``cron`` counts whole days: the work grows with the months between the two
    instants, not with the fires, so a year of every second costs what a year of daily does.
    """
    if until <= after:
        return 0
    if isinstance(schedule, Every):
        return schedule.count_between(after, until)
    if isinstance(schedule, Cron):
        span = schedule.span
        return evaluator_of(schedule.rule).count(span.from_start(after), span.until_end(until))
    fire = schedule.next_fire(after)
    return 1 if fire is not None and fire <= until else 0


def start_of_last(schedule: Schedule, after: datetime, until: datetime, count: int) -> datetime:
    """The instant in [after, until] behind which exactly ``count`` fires lie up to ``until``.

    ``after`` where there are no more than that. ``every`` is arithmetic; ``cron`` halves the seconds
    between the two instants, so a year costs 25 counts.
    """
    if count_fires(schedule, after, until) <= count:
        return after
    if count == 0:
        return until
    if isinstance(schedule, Every):
        return schedule.nth_last(until, count) - MICROSECOND
    return _halve(schedule, after, until, count)


@lru_cache(maxsize=4096)
def _halve(schedule: Schedule, after: datetime, until: datetime, count: int) -> datetime:
    """The first whole second behind which no more than ``count`` lie; ``cron`` fires at whole seconds."""
    base = after.replace(microsecond=0)
    low, high = 0, (until - base) // _SECOND + 1
    while high - low > 1:
        middle = (low + high) // 2
        if count_fires(schedule, base + middle * _SECOND, until) > count:
            low = middle
        else:
            high = middle
    return base + high * _SECOND


def last_fire(schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
    """The last fire in (after, until]."""
    fire = schedule.next_fire(start_of_last(schedule, after, until, 1)) if until > after else None
    return None if fire is None or fire > until else fire


def jitter_offset(job_id: UUID, width: timedelta) -> timedelta:
    """How much later than planned this job starts: in [0, width), always the same for one job and width."""
    if width < timedelta(0):
        raise InvalidValue(
            f"a jitter of {format_duration(width)} is negative: it is 0s or longer", field="jitter"
        )
    return (jitter_share(job_id) * (width // MICROSECOND) >> 64) * MICROSECOND


def jitter_share(job_id: UUID) -> int:
    """Where in any time that its starts are spread over this job's place is: of 2 ** 64."""
    return int.from_bytes(blake2b(job_id.bytes, digest_size=8, person=b"jitter").digest(), "big")


def spread_fire(schedule: Schedule, fire: datetime, job_id: UUID, width: timedelta) -> datetime:
    """When a job whose starts are spread over ``width`` is due for ``fire``.

    Later than the fire by what is the job's own, but before the next fire: what is due stays in order.
    """
    if not width:
        return fire
    following = schedule.next_fire(fire) if schedule.recurring else None
    return fire + jitter_offset(job_id, width if following is None else min(width, following - fire))
