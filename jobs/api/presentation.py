"""How jobs read in JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from executions.api.presentation import time_text
from jobs.definitions import definition_body
from jobs.models import Job


def job_json(job: Job, next_run_at: datetime | None) -> dict[str, Any]:
    return {
        "id": str(job.id),
        **definition_body(job),
        "createdAt": time_text(job.created_at),
        "createdBy": job.created_by,
        "managedBy": job.managed_by or None,
        "pausedAt": time_text(job.paused_at),
        "problem": job.problem or None,
        "nextRunAt": time_text(next_run_at),
    }
