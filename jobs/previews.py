"""Previews: what a schedule will do, before it does.

A preview is made by the functions that plan the runs (``Schedule.first_fire`` and ``next_fire``), so
that it cannot say anything else than what will be created.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from django.db import connection

from executions.ids import lowest_id
from executions.listing import between
from executions.models import Execution
from executions.states import State
from jobs.models import Job, Overlap
from jobs.queries import JOBS
from jobs.schedules import (
    At,
    Cron,
    Every,
    Schedule,
    describe,
    fires_after,
    fires_of_new,
    jitter_offset,
    run_length_warnings,
    warnings,
)
from jobs.schedules.kinds import format_instant
from jobs.services import LATEST_START, TOO_LATE
from jobs.stored_schedules import schedule_of
from scheduler_project.kernel.durations import format_duration

DEFAULT_COUNT = 10
MAX_COUNT = 500
LOOKED_AT = 20  # fires that are compared with the length of a run, however few are shown
LOOKED_AHEAD = timedelta(days=146_097)
"""400 years, after which the calendar repeats itself. An evaluation costs by the time that it passes over."""
RECENT_RUNS = 50
RECENT = timedelta(days=30)


_OVERLAPS = {
    Overlap.FORBID: "what is due while a run goes on is skipped (overlap forbid)",
    Overlap.ALLOW: "runs go on side by side (overlap allow)",
    Overlap.QUEUE: "runs pile up behind each other (overlap queue)",
    Overlap.REPLACE: "each run is cancelled for the next (overlap replace)",
}


@dataclass(frozen=True, slots=True)
class Preview:
    fires: list[datetime]
    description: str
    warnings: list[str]


def preview_schedule(
    schedule: Schedule, after: datetime, count: int, usual_length: timedelta | None = None
) -> Preview:
    """The first ``count`` fires of a job that would be created at ``after``."""
    fires = _looked_at(schedule, fires_of_new(schedule, after), after, count)
    said = run_length_warnings(fires, usual_length) if usual_length else []
    return _preview(schedule, fires, after, count, said)


def preview_job(job: Job, after: datetime, count: int) -> Preview:
    """The ``count`` fires of a saved job that follow ``after``."""
    schedule = schedule_of(job)
    fires = _looked_at(schedule, fires_after(schedule, after), after, count)
    usual = usual_length(job, after)
    said = run_length_warnings(fires, usual, _OVERLAPS[Overlap(job.overlap)]) if usual else []
    return _preview(schedule, fires, after, count, [*said, *_on_job(job, fires[:count])])


def _looked_at(schedule: Schedule, fires: Iterator[datetime], after: datetime, count: int) -> list[datetime]:
    """What a preview of ``count`` is made of; of a cron expression what lies in LOOKED_AHEAD, or one."""
    some = islice(fires, max(count, LOOKED_AT))
    if not isinstance(schedule, Cron):
        return list(some)
    first = list(islice(some, 1))
    return [*first, *takewhile(lambda fire: fire - after <= LOOKED_AHEAD, some)]


def usual_length(job: Job, now: datetime) -> timedelta | None:
    """How long the latest runs of ``job`` took that completed normally, in the median; None without any."""
    since, state = lowest_id(now - RECENT), str(State.COMPLETED_NORMALLY)
    with connection.cursor() as cursor:
        cursor.execute(JOBS["usual_length"], [job.id, since, state, RECENT_RUNS])
        (length,) = cursor.fetchone()
    return None if length is None else timedelta(seconds=round(length.total_seconds(), 3))


def _on_job(job: Job, fires: Sequence[datetime]) -> Iterator[str]:
    """What of the job, and not of its schedule, moves its runs."""
    if job.paused_at is not None:
        yield "The job is paused: none of these will run before it is resumed."
    if job.jitter:
        offset, width = format_duration(jitter_offset(job.id, job.jitter)), format_duration(job.jitter)
        yield f"Each run of this job starts {offset} after its planned time (jitter {width})."
    for planned, moved_to in _moved(job, fires):
        yield f"The run planned for {format_instant(planned)} was moved to {format_instant(moved_to)}."


def _moved(job: Job, fires: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """Which of ``fires`` somebody has given another time, and which."""
    if not fires:
        return []
    rows = between(Execution.objects.filter(job_id=job.id), fires[0], fires[-1] + timedelta(milliseconds=1))
    moved = rows.filter(moved_to__isnull=False).order_by("id").values_list("scheduled_for", "moved_to")
    return [(planned, to) for planned, to in moved if to is not None]


def _preview(
    schedule: Schedule, fires: list[datetime], after: datetime, count: int, said: list[str]
) -> Preview:
    """``said``: what there is to say beside what the schedule itself gives rise to."""
    shown = fires[:count]
    of_schedule = warnings(schedule, after, shown[-1] if shown else None)
    at_the_end = _on_the_end(schedule, fires, after, count)
    return Preview(shown, describe(schedule), [*of_schedule, *said, *at_the_end])


def _on_the_end(schedule: Schedule, fires: list[datetime], after: datetime, count: int) -> list[str]:
    if not fires:
        return ["It does not fire any more."]
    if fires[0] < after - LATEST_START:
        return [f"A job with this schedule is refused: {TOO_LATE.format(first=format_instant(fires[0]))}"]
    if isinstance(schedule, At) and schedule.instant <= after:
        return ["This instant is past: the run is due at once."]
    ends = isinstance(schedule, Cron | Every) and schedule.span.end is not None
    if isinstance(schedule, Cron) and 0 < len(fires) < count and _goes_on(schedule, fires[-1]):
        return [f"Of {count} fires only those of the next 400 years are shown, {len(fires)}."]
    if ends and len(fires) < count:
        return [f"It fires {len(fires)} more time{'s' if len(fires) > 1 else ''}, and then never again."]
    return []


def _goes_on(schedule: Schedule, last: datetime) -> bool:
    return schedule.next_fire(last) is not None
