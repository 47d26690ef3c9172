"""How many runs the schedules of the coming days start in each minute, and which jobs those are.

Each distinct schedule is worked out once, however many jobs have it; what is spread (jitter) is moved job
by job. It is what the schedules say: a run that was moved, and what a job's overlap rule leaves
out, are not in it. Paused and deleted jobs are not, nor what is past an end date.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from jobs.models import Job
from jobs.schedules import Schedule, describe, fires_after, spread_fire
from jobs.schedules.density import Fires, fires_in
from jobs.schedules.fires import jitter_share
from jobs.stored_schedules import schedule_from
from scheduler_project.kernel.clock import MICROSECOND
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

WEEK_MINUTES = 7 * 24 * 60
MINUTE = timedelta(minutes=1)
MINUTE_US = MINUTE // MICROSECOND
MOST_TIMES = 10
_TEXT = Cast("schedule", TextField())


@dataclass(frozen=True, slots=True)
class Calendar:
    """``starts``: how many runs start in each minute from ``since`` on. ``jobs``: how many do so.

    ``unreadable``: how many more have a schedule that can no longer be read.
    """

    since: datetime
    starts: list[int]
    jobs: int = 0
    unreadable: int = 0

    def busiest(self, count: int) -> list[tuple[datetime, int]]:
        """The minutes with the most starts, the most first; none without a start."""
        found = heapq.nlargest(count, enumerate(self.starts), key=lambda item: (item[1], -item[0]))
        return [(self.since + minute * MINUTE, starts) for minute, starts in found if starts]


@dataclass(frozen=True, slots=True)
class Starting:
    """A job that starts in a minute; ``times``: when, at most ``most`` of them, of ``count``."""

    job_id: UUID
    job: str
    owner: str
    description: str
    jitter: timedelta
    times: list[datetime]
    count: int


def calendar(jobs: QuerySet[Job], since: datetime, minutes: int = WEEK_MINUTES) -> Calendar:
    """Of those of ``jobs`` that are neither paused nor deleted. ``since``: a whole minute."""
    starts = [0] * minutes
    active = unreadable = 0
    for text, members in _by_schedule(jobs).items():
        try:
            schedule = schedule_from(text)
        except InvalidValue as error:
            unreadable += members.count
            logger.warning("schedule_unreadable", extra={"jobs": members.count, "error": error.message})
        else:
            active += _count(schedule, members, since, starts)
    return Calendar(since, starts, active, unreadable)


def starting_in(jobs: QuerySet[Job], minute: datetime, limit: int) -> tuple[list[Starting], int]:
    """The jobs that start in that minute, at most ``limit``, by team and name; and how many do."""
    rows = _active(jobs).values_list("id", "name", "owner__name", "jitter", _TEXT)
    found = [
        starting
        for row in rows.order_by("owner__name", "name", "id").iterator(chunk_size=2000)
        if (starting := _starting(*row, minute=minute)) is not None
    ]
    return found[:limit], len(found)


def _starting(
    job_id: UUID, name: str, owner: str, jitter: timedelta, text: str, *, minute: datetime
) -> Starting | None:
    try:
        schedule = schedule_from(text)
    except InvalidValue:
        return None
    times = list(_times(schedule, job_id, jitter, minute))
    if not times:
        return None
    return Starting(job_id, name, owner, describe(schedule), jitter, times[:MOST_TIMES], len(times))


def _times(schedule: Schedule, job_id: UUID, jitter: timedelta, minute: datetime) -> Iterator[datetime]:
    fires = (
        fires_after(schedule, minute - jitter - MICROSECOND)
        if schedule.recurring
        else _once(schedule, minute)
    )
    for fire in fires:
        if fire >= minute + MINUTE:
            return
        due = spread_fire(schedule, fire, job_id, jitter)
        if minute <= due < minute + MINUTE:
            yield due


def _once(schedule: Schedule, minute: datetime) -> Iterable[datetime]:
    fire = schedule.first_fire(minute)
    return [] if fire is None else [fire]


@dataclass(slots=True)
class _Members:
    """The jobs of one schedule: how many, and those that are spread over a time."""

    count: int = 0
    spread: list[tuple[UUID, timedelta]] = field(default_factory=list)


def _active(jobs: QuerySet[Job]) -> QuerySet[Job]:
    return jobs.filter(paused_at=None, archived_at=None)


def _by_schedule(jobs: QuerySet[Job]) -> dict[str, _Members]:
    found: dict[str, _Members] = defaultdict(_Members)
    for job_id, jitter, text in (
        _active(jobs).order_by().values_list("id", "jitter", _TEXT).iterator(chunk_size=5000)
    ):
        members = found[text]
        members.count += 1
        if jitter:
            members.spread.append((job_id, jitter))
    return found


def _count(schedule: Schedule, members: _Members, since: datetime, starts: list[int]) -> int:
    """How many of the jobs start in it."""
    plain, active = members.count - len(members.spread), 0
    if plain:
        fires = fires_in(schedule, since, len(starts))
        for time in fires.times:
            starts[time // MINUTE_US] += plain
        for minute, count in fires.crowded.items():
            starts[minute] += count * plain
        active = plain if fires.times or fires.crowded else 0
    if members.spread and _count_spread(schedule, members.spread, since, starts):
        active += len(members.spread)
    return active


def _count_spread(
    schedule: Schedule, spread: list[tuple[UUID, timedelta]], since: datetime, starts: list[int]
) -> bool:
    """Whether any starts in the span. What fires before it may. What fires more than once a minute stays
    in its minute: no start is moved beyond the next fire."""
    lead = -(-max(width for _, width in spread) // MINUTE)
    begin = since - lead * MINUTE
    fires = fires_in(schedule, begin, lead + len(starts))
    any_start = _add(
        starts, ((minute - lead, count * len(spread)) for minute, count in fires.crowded.items())
    )
    shares: dict[timedelta, list[int]] = defaultdict(list)
    for job_id, width in spread:
        shares[width].append(jitter_share(job_id))
    gaps = _gaps(schedule, fires, begin)
    for width, jobs in shares.items():
        for room, times in _by_room(fires.times, gaps, width // MICROSECOND).items():
            shifts = Counter(share * room >> 64 for share in jobs)
            any_start = _shift(times, shifts, lead, starts) or any_start
    return any_start


def _by_room(times: list[int], gaps: list[int], width: int) -> dict[int, list[int]]:
    """Fires by the time that starts may be spread over: not beyond the next fire. In microseconds."""
    found: dict[int, list[int]] = defaultdict(list)
    for time, gap in zip(times, gaps, strict=True):
        found[min(width, gap)].append(time)
    return found


def _shift(times: list[int], shifts: Counter[int], lead: int, starts: list[int]) -> bool:
    """Add each fire, moved by each length of time (in microseconds) that so many jobs are moved by; whether
    any lies in the span."""
    any_start = False
    by_part: dict[int, list[int]] = defaultdict(list)
    for time in times:
        by_part[time % MINUTE_US].append(time // MINUTE_US - lead)
    for part, minutes in by_part.items():
        moved = Counter[int]()
        for shift, jobs in shifts.items():
            moved[(part + shift) // MINUTE_US] += jobs
        for by, jobs in moved.items():
            any_start = _add(starts, ((minute + by, jobs) for minute in minutes)) or any_start
    return any_start


def _gaps(schedule: Schedule, fires: Fires, begin: datetime) -> list[int]:
    """From each fire to the next, in microseconds."""
    if not fires.times:
        return []
    last = begin + fires.times[-1] * MICROSECOND
    following = schedule.next_fire(last) if schedule.recurring else None
    to_come = timedelta.max if following is None else following - last
    return [*(after - before for before, after in pairwise(fires.times)), to_come // MICROSECOND]


def _add(starts: list[int], counts: Iterable[tuple[int, int]]) -> bool:
    """Those that lie within the span; whether any does."""
    end, any_start = len(starts), False
    for minute, count in counts:
        if 0 <= minute < end:
            starts[minute] += count
            any_start = True
    return any_start
