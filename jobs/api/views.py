"""REST of jobs: thin edges over definitions.py, listing.py and services.py."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView, page, require_empty
from executions.api.presentation import time_text
from jobs import services
from jobs.api.presentation import job_json
from jobs.definitions import definition_body, read_definition, read_missed
from jobs.listing import JobSelection, find_job, list_jobs, next_runs
from jobs.models import Job
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
            more=len(found) > limit,
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
        return _shown(find_job(parameters.identity(job_id), self.user))

    def patch(self, request: Request, job_id: str) -> Response:
        """The fields that are to be others; the rest stays."""
        parameters.read_query(request.query_params, {})
        job = find_job(parameters.identity(job_id), self.user)
        definition = read_definition({**definition_body(job), **self.body})
        definition = replace(definition, managed_by=job.managed_by)
        return _shown(services.update_job(job, definition, self.user, utcnow()))

    def delete(self, request: Request, job_id: str) -> Response:
        """Its history stays; a job that is deleted already is not there."""
        parameters.read_query(request.query_params, {})
        job = find_job(parameters.identity(job_id), self.user)
        services.archive_job(job, self.user, utcnow())
        return Response(status=HTTPStatus.NO_CONTENT)


class JobPause(RestView):
    def post(self, request: Request, job_id: str) -> Response:
        """Twice is once."""
        parameters.read_query(request.query_params, {})
        require_empty(self.body)
        job = find_job(parameters.identity(job_id), self.user)
        return _shown(services.pause_job(job, self.user, utcnow()))


class JobResume(RestView):
    def post(self, request: Request, job_id: str) -> Response:
        """``missed``: what becomes of the times that passed meanwhile. Twice is once."""
        parameters.read_query(request.query_params, {})
        missed = read_missed(self.body)
        job = find_job(parameters.identity(job_id), self.user)
        return _shown(services.resume_job(job, self.user, utcnow(), missed))


def _shown(job: Job) -> Response:
    return Response(job_json(job, next_runs([job]).get(job.id)))
