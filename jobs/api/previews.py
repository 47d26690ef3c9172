"""REST of previews: of a job's schedule, and of a schedule that is not saved yet."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView
from executions.api.presentation import time_text
from jobs.api.bodies import Reader, instant, read_body, text, whole_number
from jobs.listing import find_job
from jobs.previews import DEFAULT_COUNT, MAX_COUNT, Preview, preview_job, preview_schedule, usual_length
from jobs.schedules import parse_schedule
from scheduler_project.kernel.clock import utcnow

QUERY: dict[str, parameters.Reader] = {
    "count": parameters.whole_number(1, MAX_COUNT),
    "after": parameters.instant,
}


class JobPreview(RestView):
    def get(self, request: Request, job_id: str) -> Response:
        """The fires that follow ``after`` (now)."""
        query = parameters.read_query(request.query_params, QUERY)
        job = find_job(parameters.identity(job_id), self.user)
        after = query.get("after") or utcnow()
        return Response(preview_json(preview_job(job, after, query.get("count", DEFAULT_COUNT))))


class SchedulePreview(RestView):
    def post(self, request: Request) -> Response:
        """The fires of a job that would be created at ``after`` (now). With ``job``, the length of that
        job's runs is looked at too."""
        parameters.read_query(request.query_params, {})
        given = read_body(self.body, READERS, required=("schedule",))
        job = find_job(given["job"], self.user) if "job" in given else None
        now = utcnow()
        preview = preview_schedule(
            given["schedule"],
            given.get("after", now),
            given.get("count", DEFAULT_COUNT),
            usual_length(job, now) if job else None,
        )
        return Response(preview_json(preview))


def preview_json(preview: Preview) -> dict[str, Any]:
    return {
        "fires": [time_text(fire) for fire in preview.fires],
        "description": preview.description,
        "warnings": preview.warnings,
    }


def _schedule(value: object, name: str) -> Any:
    return parse_schedule(value, field=name)


def _job(value: object, name: str) -> UUID:
    return parameters.uuid(text(value, name), name)


READERS: dict[str, Reader] = {
    "schedule": _schedule,
    "after": instant,
    "count": whole_number(1, MAX_COUNT),
    "job": _job,
}
