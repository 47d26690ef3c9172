"""Of a job's page: ``{% job_preview job %}``, when it runs next, and ``|moment``, an instant."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import template

from executions.admin_cells import time_cell
from jobs.models import Job
from jobs.previews import preview_job
from jobs.schedules import Cron, parse_schedule
from jobs.schedules.zones import load_zone
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidValue

SHOWN = 20

register = template.Library()
register.filter("moment", time_cell)


@register.inclusion_tag("admin/jobs/job/preview.html")
def job_preview(job: Job) -> dict[str, Any]:
    """A schedule that can no longer be read (its zone is gone) is said to be so; the page is still there."""
    try:
        preview, zone = preview_job(job, utcnow(), SHOWN), _zone_of(job)
    except InvalidValue as error:
        return {"job": job, "unreadable": error.message}
    fires = [{"at": time_cell(fire), "local": _local(fire, zone)} for fire in preview.fires]
    return {"job": job, "preview": preview, "fires": fires, "zone": zone}


def _zone_of(job: Job) -> ZoneInfo | None:
    """The zone whose clock the job goes by; None where that is UTC anyway."""
    schedule = parse_schedule(job.schedule)
    if not isinstance(schedule, Cron) or schedule.rule.timezone == "UTC":
        return None
    return load_zone(schedule.rule.timezone)


def _local(fire: datetime, zone: ZoneInfo | None) -> str:
    return f"{fire.astimezone(zone):%a %Y-%m-%d %H:%M:%S %z}" if zone else ""
