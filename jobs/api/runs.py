"""REST of runs that somebody asks for: now, or of a span of the past."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.levels import Level
from access.policy import require
from executions.api import parameters
from executions.api.base import RestView
from executions.api.bodies import boolean, instant, whole_number
from executions.api.documenting import Answer, Body, documented
from executions.api.idempotency import KEYED, given_key, once_per_key
from executions.api.presentation import time_text
from jobs.api.fields import JOB_FIELDS
from jobs.api.schemas import BackfillShown, RunStarted
from jobs.api.views import JOB_ID
from jobs.backfills import MAX_ACTIVE, BackfilledRun, BackfillRequest, backfill
from jobs.listing import find_job
from jobs.runs import RunRequest, run_job
from scheduler_project.kernel.clock import utcnow

RUN = Body(
    "Run",
    "A run of a job, now.",
    {"parameters": JOB_FIELDS["parameters"].saying("In place of the job's of the same name.")},
)
BACKFILL = Body(
    "Backfill",
    "A span of the past, or of what is to come, whose times are run.",
    {
        "from": instant.saying("From then on."),
        "to": instant.saying("Up to then, itself left out; at most 1,000 times lie between."),
        "maxActive": whole_number(1, MAX_ACTIVE).saying("How many are under way at once.", default=1),
        "dryRun": boolean.saying("Only list them.", default=False),
    },
    required=("from", "to"),
)
LOCATION = {"Location": "The run's address."}


class JobRun(RestView):
    in_path = JOB_ID

    @documented(
        "Run a job now",
        body=RUN,
        takes=KEYED,
        answers={
            201: Answer(RunStarted, "The run is made.", LOCATION),
            200: Answer(RunStarted, "It was made before, with this key.", LOCATION),
        },
        errors=(409,),
    )
    def post(self, request: Request, job_id: str) -> Response:
        """One run, beside the schedule. 409: the key was used for a run with other parameters."""
        asked = RunRequest(self.given.get("parameters", {}), given_key(request))
        run = run_job(find_job(parameters.identity(job_id), self.user), self.user, utcnow(), asked)
        return Response(
            {"executionId": str(run.execution_id)},
            status=HTTPStatus.CREATED if run.made else HTTPStatus.OK,
            headers={"Location": f"/api/v1/executions/{run.execution_id}"},
        )


def _require_right(view: RestView, job_id: str) -> None:
    require(view.user, Level.OPERATE, find_job(parameters.identity(job_id), view.user).owner)


class JobBackfill(RestView):
    in_path = JOB_ID

    @documented(
        "Backfill a job",
        body=BACKFILL,
        takes=KEYED,
        answers={
            201: Answer(BackfillShown, "Some runs are made."),
            200: Answer(
                BackfillShown,
                "Nothing is made: there were runs of all, they are only listed, or this key has made them.",
            ),
        },
        errors=(409,),
    )
    @once_per_key(_require_right)
    def post(self, request: Request, job_id: str) -> Response:
        """Run the fires in a span that have no run yet. 409: the key was used for another request."""
        asked = BackfillRequest(
            self.given["from"],
            self.given["to"],
            self.given.get("maxActive", 1),
            self.given.get("dryRun", False),
        )
        job = find_job(parameters.identity(job_id), self.user)
        runs = backfill(job, asked, self.user, utcnow())
        made = any(run.new for run in runs) and not asked.dry_run
        return Response(backfill_json(asked, runs), status=HTTPStatus.CREATED if made else HTTPStatus.OK)


def backfill_json(asked: BackfillRequest, runs: list[BackfilledRun]) -> dict[str, Any]:
    return {
        "dryRun": asked.dry_run,
        "maxActive": asked.most_active,
        "count": len(runs),
        "new": sum(run.new for run in runs),
        "executions": [
            {
                "executionId": str(run.execution_id),
                "scheduledFor": time_text(run.scheduled_for),
                "new": run.new,
            }
            for run in runs
        ],
    }
