"""REST of jobs: thin edges over definitions.py, listing.py and services.py."""

from __future__ import annotations

from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView, page, require_empty
from executions.api.presentation import time_text
from jobs import services
from jobs.api.presentation import job_json
from jobs.definitions import read_definition
from jobs.listing import JobSelection, find_job, list_jobs, next_runs
from scheduler_project.kernel.clock import utcnow

LIST_PARAMETERS: dict[str, parameters.Reader] = {
    "owner": parameters.text,
    "name": parameters.text,
    "limit": parameters.limit,
    "cursor": parameters.cursor,
}


class JobList(RestView):
    def get(self, request: Request) -> Response:
        """``owner`` and ``name`` are exact."""
        query = parameters.read_query(request.query_params, LIST_PARAMETERS)
        limit = query.get("limit", parameters.DEFAULT_LIMIT)
        selection = JobSelection(owner=query.get("owner", ""), name=query.get("name", ""))
        found = list_jobs(selection, self.user, after=query.get("cursor"), limit=limit + 1)
        shown = found[:limit]
        due = next_runs(shown)
        return page(
            request,
            [job_json(job, due.get(job.id)) for job in shown],
            shown[-1].id if len(found) > limit else None,
        )

    def post(self, request: Request) -> Response:
        """One transaction: the job and its first execution."""
        parameters.read_query(request.query_params, {})
        made = services.create_job(read_definition(self.body), self.user, utcnow())
        body = {
            "jobId": str(made.job.id),
            "firstExecutionId": str(made.first_execution_id),
            "nextRunAt": time_text(made.next_run_at),
        }
        return Response(
            body, status=HTTPStatus.CREATED, headers={"Location": f"{request.path}/{made.job.id}"}
        )


class JobDetail(RestView):
    def get(self, request: Request, job_id: str) -> Response:
        parameters.read_query(request.query_params, {})
        job = find_job(parameters.identity(job_id), self.user)
        return Response(job_json(job, next_runs([job]).get(job.id)))


class JobRun(RestView):
    def post(self, request: Request, job_id: str) -> Response:
        """One run now, beside the schedule."""
        parameters.read_query(request.query_params, {})
        require_empty(self.body)
        job = find_job(parameters.identity(job_id), self.user)
        execution_id = str(services.run_job(job, self.user, utcnow()))
        return Response(
            {"executionId": execution_id},
            status=HTTPStatus.CREATED,
            headers={"Location": f"/api/v1/executions/{execution_id}"},
        )
