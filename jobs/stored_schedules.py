"""The schedule of a stored job: as it is written, and as it counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jobs.models import Job
from jobs.schedules import Schedule, parse_schedule


def planning_schedule(job: Job) -> Schedule:
    """The schedule by which runs are planned and missed fires counted: from when the job was given it."""
    schedule = schedule_of(job)
    return schedule if job.schedule_since is None else schedule.given_at(job.schedule_since)


def schedule_of(job: Job) -> Schedule:
    """The schedule of a stored job; thousands of jobs share a text, and it is read once.

    InvalidValue where it can no longer be read.
    """
    return schedule_from(json.dumps(job.schedule, sort_keys=True))


@lru_cache(maxsize=20_000)
def schedule_from(text: str) -> Schedule:
    """The same of a schedule's JSON as text."""
    return parse_schedule(json.loads(text))


def schedule_text(schedule: Any) -> str:
    """A stored schedule on one line: ``0 2 * * *``, ``0 2 * * * Europe/Berlin``, ``every 10s``, ``at …``.

    Read again it is the same schedule, where it has no more than that.
    """
    if not isinstance(schedule, Mapping):
        return str(schedule)
    if "cron" in schedule:
        zone = schedule.get("timezone", "UTC")
        return str(schedule["cron"]) + ("" if zone == "UTC" else f" {zone}")
    for kind in ("every", "at", "after"):
        if kind in schedule:
            return f"{kind} {schedule[kind]}"
    return json.dumps(schedule)
