"""REST of what a run would be: nothing is started."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView
from executions.api.bodies import instant
from executions.api.documenting import Body, documented
from executions.api.presentation import time_text
from jobs.api.fields import JOB_FIELDS
from jobs.api.schemas import RenderedShown
from jobs.api.views import JOB_ID
from jobs.listing import find_job
from jobs.rendering import WouldRun, would_run
from scheduler_project.kernel.clock import utcnow

RENDER = Body(
    "Render",
    "A run that is not made.",
    {
        "at": instant.saying("The time that it would be planned for; default: now."),
        "parameters": JOB_FIELDS["parameters"].saying("In place of the job's of the same name."),
    },
)


class JobRender(RestView):
    in_path = JOB_ID

    @documented("What a run of a job would be", body=RENDER, answers={200: RenderedShown}, errors=(404,))
    def post(self, request: Request, job_id: str) -> Response:
        """Its first attempt, with all templates filled in; secrets are there by name. Nothing is started."""
        job = find_job(parameters.identity(job_id), self.user)
        found = would_run(job, self.given.get("at") or utcnow(), self.given.get("parameters", {}))
        return Response(rendered_json(found))


def rendered_json(found: WouldRun) -> dict[str, Any]:
    return {
        "plannedFor": time_text(found.planned),
        "command": list(found.words),
        "image": found.image,
        "env": dict(found.env),
        "secretEnv": dict(found.secrets),
        "passedEnv": list(found.passed),
        "container": dict(found.container),
        "problem": found.problem or None,
    }
