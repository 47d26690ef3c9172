"""REST of previews: of a job's schedule, and of a schedule that is not saved yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.policy import User
from executions.api import parameters
from executions.api.base import RestView
from executions.api.bodies import instant, uuid, whole_number
from executions.api.documenting import Body, documented
from executions.api.presentation import time_text
from executions.api.reads import Reads
from jobs.api.fields import JOB_FIELDS
from jobs.api.schemas import PreviewShown
from jobs.api.views import JOB_ID
from jobs.listing import find_job
from jobs.previews import DEFAULT_COUNT, MAX_COUNT, Preview, preview_job, preview_schedule, usual_length
from jobs.schedules import parse_schedule
from scheduler_project.kernel.clock import utcnow

COUNT = "How many fires."
AFTER = "Fires later than this; default: now."
QUERY: dict[str, parameters.Reader] = {
    "count": parameters.whole_number(1, MAX_COUNT).saying(COUNT, default=DEFAULT_COUNT),
    "after": parameters.instant.saying(AFTER),
}
PREVIEW = Body(
    "Preview",
    "A schedule that is not saved.",
    {
        "schedule": Reads(
            lambda value, name: parse_schedule(value, field=name), JOB_FIELDS["schedule"].schema
        ).saying("The schedule of a job that would be made at `after`."),
        "after": instant.saying(AFTER),
        "count": whole_number(1, MAX_COUNT).saying(COUNT, default=DEFAULT_COUNT),
        "job": uuid.saying("A job whose usual length the warnings look at."),
    },
    required=("schedule",),
)


class JobPreview(RestView):
    in_path = JOB_ID

    @documented("The next fires of a job", query=QUERY, answers={200: PreviewShown})
    def get(self, request: Request, job_id: str) -> Response:
        """The fires that follow, a sentence, and what may surprise."""
        job = find_job(parameters.identity(job_id), self.user)
        after = self.query.get("after") or utcnow()
        return Response(preview_json(preview_job(job, after, self.query.get("count", DEFAULT_COUNT))))


class SchedulePreview(RestView):
    @documented("The next fires of a schedule", body=PREVIEW, answers={200: PreviewShown}, errors=(404,))
    def post(self, request: Request) -> Response:
        """Of a job that would be made then. With `job`, the length of that job's runs is looked at too."""
        return Response(preview_json(preview_asked_for(self.given, self.user)))


def preview_asked_for(given: Mapping[str, Any], user: User) -> Preview:
    """What ``PREVIEW`` read. NotFound for a job that ``user`` does not see."""
    job = find_job(given["job"], user) if "job" in given else None
    now = utcnow()
    return preview_schedule(
        given["schedule"],
        given.get("after", now),
        given.get("count", DEFAULT_COUNT),
        usual_length(job, now) if job else None,
    )


def preview_json(preview: Preview) -> dict[str, Any]:
    return {
        "fires": [time_text(fire) for fire in preview.fires],
        "description": preview.description,
        "warnings": preview.warnings,
    }
