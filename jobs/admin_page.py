"""What a job's page shows beside its form: how it stands, its runs, its next fires, what a run would be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.html import format_html

from access.audit import Change, changes_of, value_text
from executions.admin_cells import NOTHING, length_cell, state_class, time_cell
from executions.retry_policies import read_policy
from executions.states import State
from jobs.admin_cells import condition_cell, latest_run_cell, next_run_cell, runs_of
from jobs.history import History, PastRun, history_of
from jobs.listing import run_to_come
from jobs.models import Job
from jobs.rendering import would_run
from jobs.stored_schedules import schedule_text
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidFields

CHANGES_SHOWN = 20
LONGEST_VALUE = 200


def job_page(job: Job, now: datetime) -> dict[str, Any]:
    """The context of the page's parts."""
    history = history_of(job, now)
    return {
        "facts": facts_of(job, now),
        "cells": [_cell(run) for run in history.runs],
        "trend": _trend(history),
        "legend": [(state_class(state), state) for state in State],
        "usual": None if history.usual is None else length_cell(history.usual),
        "longest": None if history.longest is None else length_cell(history.longest),
        "changes": [_change(change, job) for change in changes_of(job, CHANGES_SHOWN)],
        "rendered": would_run(job, runs_of(job).next_at or now),
    }


def _change(change: Change, job: Job) -> dict[str, Any]:
    """``subject``: only where it is not the job itself, but one of its runs."""
    return {
        "at": time_cell(change.at),
        "who": change.who,
        "token": change.token,
        "action": change.action,
        "subject": "" if change.subject == str(job) else change.subject,
        "fields": [(name, _short(before), _short(after)) for name, (before, after) in change.fields.items()],
    }


def _short(value: Any) -> str:
    text = value_text(value) or NOTHING
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def facts_of(job: Job, now: datetime) -> list[tuple[str, str]]:
    """What there is to be seen of a job and not for anybody to change."""
    timeout = NOTHING if job.timeout is None else format_duration(job.timeout)
    return [
        ("Condition", condition_cell(job)),
        ("Latest run", latest_run_cell(job)),
        ("Next run", next_run_cell(job, now, run_to_come(job))),
        ("Schedule", schedule_text(job.schedule)),
        ("Owner", job.owner.name),
        ("Type", job.type),
        ("Queue, priority", f"{job.queue}, {job.priority}"),
        ("Pool", str(job.pool or NOTHING)),
        ("Retries", retries_text(job)),
        ("Time-out", timeout),
        ("Task", job.task.name if job.task else NOTHING),
        ("Declared by", job.managed_by or NOTHING),
        ("Created", format_html("{} by {}", time_cell(job.created_at), job.created_by)),
        ("Id", str(job.id)),
    ]


def retries_text(job: Job) -> str:
    try:
        policy = read_policy(job.retry_policy)
    except InvalidFields as error:  # written past the definitions, by SQL
        return error.message
    return replace(policy, retries=job.retries, delay=job.retry_delay).sentence()


def _cell(run: PastRun) -> dict[str, Any]:
    return {
        "address": reverse("admin:executions_execution_change", args=[run.id]),
        "kind": state_class(run.state),
        "state": str(run.state),
        "at": time_cell(run.scheduled_for),
        "length": "not begun" if run.length is None else length_cell(run.length),
        "attempt": run.attempt,
        "why": "" if run.reason in {"", "succeeded"} else run.reason.replace("_", " "),
    }


def _trend(history: History) -> str | None:
    """The lengths in JSON for the chart; None where fewer than two runs have one."""
    points = [
        {
            "at": run.scheduled_for.isoformat(),
            "seconds": round(run.length / timedelta(seconds=1), 3),
            "state": str(run.state),
            "kind": state_class(run.state),
        }
        for run in history.runs
        if run.length is not None
    ]
    return None if len(points) < 2 else json.dumps(points)
