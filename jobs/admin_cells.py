"""How a job stands, in the admin: its condition, its latest run, its schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html

from containers.options import by_path
from executions.admin_cells import NOTHING, length_cell, state_cell, time_cell
from executions.models import Execution
from executions.states import TERMINAL, State
from jobs.listing import NOT_YET_LATE, latest_runs, next_runs
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
        return format_html("deleted {}", time_cell(job.archived_at))
    if job.problem:
        return f"cannot be read: {job.problem}"
    if job.paused_at is not None:
        return format_html("paused since {}", time_cell(job.paused_at))
    runs = runs_of(job)
    if runs.next_at is not None:
        return "scheduled"
    if runs.latest is not None and runs.latest.state not in TERMINAL:
        return "running; the next is planned when it ends"
    return "nothing more is due"


def next_run_cell(job: Job, now: datetime, run: UUID | None = None) -> str:
    """When it is due next; where that has passed, a link to why: to ``run``, or to those that wait."""
    due = runs_of(job).next_at
    if due is None or now - due < NOT_YET_LATE:
        return time_cell(due)
    address = f"{reverse('admin:executions_execution_changelist')}?job={job.id}&state={State.WAITING}"
    if run is not None:
        address = reverse("admin:executions_execution_change", args=[run])
    text = '{} <span class="punctual-late">due {} ago, not started: <a href="{}">why?</a></span>'
    return format_html(text, time_cell(due), length_cell(now - due), address)


def latest_run_cell(job: Job) -> str:
    """The state of the latest run, which leads to it, and why it did not end as it should."""
    run = runs_of(job).latest
    if run is None:
        return NOTHING
    address = reverse("admin:executions_execution_change", args=[run.id])
    why = "" if run.reason in {"", "succeeded"} else run.reason.replace("_", " ")
    link = format_html('<a href="{}">{}</a>', address, state_cell(run.state))
    return format_html("{} {}", link, why) if why else link


def options_text(container: Mapping[str, Any]) -> str:
    """What a job says of its container, a line each: ``resources.memory.limit: 2Gi``."""
    return "\n".join(
        f"{path.removeprefix('container.')}: {value if isinstance(value, str) else json.dumps(value)}"
        for path, value in by_path(container)
    )
