"""REST of runs that somebody asks for: now, or of a span of the past."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView
from executions.api.presentation import time_text
from jobs.api.bodies import boolean, instant, read_body, whole_number
from jobs.backfills import MAX_ACTIVE, BackfilledRun, BackfillRequest, backfill
from jobs.definitions import read_field
from jobs.listing import find_job
from jobs.runs import RunRequest, read_key, run_job
from scheduler_project.kernel.clock import utcnow

IDEMPOTENCY_KEY = "Idempotency-Key"


class JobRun(RestView):
    def post(self, request: Request, job_id: str) -> Response:
        """One run now, beside the schedule; 200 for a key that has made one already."""
        parameters.read_query(request.query_params, {})
        given = read_body(self.body, RUN_FIELDS)
        key = request.headers.get(IDEMPOTENCY_KEY)
        asked = RunRequest(given.get("parameters", {}), "" if key is None else read_key(key))
        run = run_job(find_job(parameters.identity(job_id), self.user), self.user, utcnow(), asked)
        return Response(
            {"executionId": str(run.execution_id)},
            status=HTTPStatus.CREATED if run.made else HTTPStatus.OK,
            headers={"Location": f"/api/v1/executions/{run.execution_id}"},
        )


class JobBackfill(RestView):
    def post(self, request: Request, job_id: str) -> Response:
        """The fires in [from, to) as runs, at most ``maxActive`` at once; 200 where nothing is new."""
        parameters.read_query(request.query_params, {})
        given = read_body(self.body, BACKFILL_FIELDS, required=("from", "to"))
        asked = BackfillRequest(
            given["from"], given["to"], given.get("maxActive", 1), given.get("dryRun", False)
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


RUN_FIELDS: Mapping[str, Callable[[Any, str], Any]] = {
    "parameters": lambda value, name: read_field(name, value),
}
BACKFILL_FIELDS: Mapping[str, Callable[[Any, str], Any]] = {
    "from": instant,
    "to": instant,
    "maxActive": whole_number(1, MAX_ACTIVE),
    "dryRun": boolean,
}
