"""How jobs read in JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from executions.api.presentation import time_text
from jobs.models import Job
from scheduler_project.kernel.durations import format_duration


def job_json(job: Job, next_run_at: datetime | None) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "name": job.name,
        "description": job.description,
        "owner": job.owner.name,
        "task": job.task.name if job.task else None,
        "type": job.type,
        "command": job.command,
        "image": job.image,
        "env": job.env,
        "parameters": job.parameters,
        "schedule": job.schedule,
        "retries": job.retries,
        "retryDelay": format_duration(job.retry_delay),
        "timeout": _length(job.timeout),
        "overlap": job.overlap,
        "misfire": {
            "policy": job.misfire,
            "maxAge": _length(job.misfire_max_age),
            "maxCount": job.misfire_max_count,
        },
        "jitter": format_duration(job.jitter),
        "createdAt": time_text(job.created_at),
        "createdBy": job.created_by,
        "managedBy": job.managed_by or None,
        "pausedAt": time_text(job.paused_at),
        "archivedAt": time_text(job.archived_at),
        "problem": job.problem or None,
        "nextRunAt": time_text(next_run_at),
    }


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)
