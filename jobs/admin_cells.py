"""How a job stands, in the admin: its condition, its latest run, its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html

from executions.admin_cells import NOTHING, state_cell, time_cell
from executions.models import Execution
from executions.states import TERMINAL
from jobs.listing import latest_runs, next_runs
from jobs.models import Job

_RUNS = "_runs_of_admin"


@dataclass(frozen=True, slots=True)
class JobRuns:
    """``latest``: begun or ended; each is None where there is none."""

    next_at: datetime | None
    latest: Execution | None


def with_runs(jobs: Sequence[Job]) -> Sequence[Job]:
    """The jobs, each knowing its runs, from one query for all the next ones and one for the latest."""
    due, latest = next_runs(jobs), latest_runs(jobs)
    for job in jobs:
        setattr(job, _RUNS, JobRuns(due.get(job.id), latest.get(job.id)))
    return jobs


def runs_of(job: Job) -> JobRuns:
    """Asked for now where no list has done so for all of its jobs."""
    if not hasattr(job, _RUNS):
        with_runs([job])
    found: JobRuns = getattr(job, _RUNS)
    return found


def condition_cell(job: Job) -> str:
    """In words, since no next run may mean several things."""
    if job.archived_at is not None:
        return format_html("deleted {} UTC", time_cell(job.archived_at))
    if job.problem:
        return f"cannot be read: {job.problem}"
    if job.paused_at is not None:
        return format_html("paused since {} UTC", time_cell(job.paused_at))
    runs = runs_of(job)
    if runs.next_at is not None:
        return "scheduled"
    if runs.latest is not None and runs.latest.state not in TERMINAL:
        return "running; the next is planned when it ends"
    return "nothing more is due"


def latest_run_cell(job: Job) -> str:
    """The state of the latest run, which leads to it, and why it did not end as it should."""
    run = runs_of(job).latest
    if run is None:
        return NOTHING
    address = reverse("admin:executions_execution_change", args=[run.id])
    why = "" if run.reason in {"", "succeeded"} else run.reason.replace("_", " ")
    link = format_html('<a href="{}">{}</a>', address, state_cell(run.state))
    return format_html("{} {}", link, why) if why else link


def schedule_text(schedule: Mapping[str, Any]) -> str:
    """A stored schedule in a few words."""
    if "cron" in schedule:
        return f"{schedule['cron']} {schedule.get('timezone', 'UTC')}"
    if "every" in schedule:
        return f"every {schedule['every']}"
    try:
        at = datetime.fromisoformat(schedule["at"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError):
        return str(dict(schedule))
    return f"once, {at:%Y-%m-%d %H:%M:%S} UTC"
