"""REST of jobs: thin edges over definitions.py, listing.py and services.py."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.bodies import uuid
from executions.api.conditions import ETAG, MATCHING, require_match, tag_of
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import filters_of, narrowed, only, some_of
from executions.api.idempotency import KEYED, once_per_key
from executions.api.orders import place
from executions.api.presentation import time_text
from executions.api.reads import Reads
from jobs import services
from jobs.api.fields import JOB_FIELDS
from jobs.api.filters import ORDERS, JobFilter
from jobs.api.presentation import job_json
from jobs.api.schemas import JobMade, JobPage, JobShown
from jobs.definitions import OF_ALL, REQUIRED, changed_body, definition_body, read_definition, read_missed
from jobs.listing import find_job, next_runs, visible_jobs
from jobs.models import Job, Missed
from scheduler_project.kernel.clock import utcnow

JOB_ID = {"job_id": uuid.saying("The job's id.")}
LIST_PARAMETERS: dict[str, parameters.Reader] = {
    **filters_of(JobFilter),
    "ordering": ORDERS.parameter,
    "fields": some_of(JobShown().get_fields()),
    "limit": parameters.limit,
    "cursor": place,
}
A_TASK = {"type": "string", "description": "Its task, which has what the job leaves out."}
OF_A_TASK = {"required": ["task"], "properties": {"task": A_TASK}}
OF_ITS_OWN = {"required": sorted(set(REQUIRED) - set(OF_ALL))}
JOB = Body(
    "Job",
    "A job to make.",
    JOB_FIELDS,
    OF_ALL,
    read=read_definition,
    rules={"anyOf": [OF_A_TASK, OF_ITS_OWN]},
)
JOB_CHANGES = Body("JobChanges", "What is to be other of a job; the rest stays.", JOB_FIELDS, read=dict)
RESUMING = Body(
    "Resuming",
    "How a job goes on.",
    {
        "missed": Reads(
            lambda value, _: value, {"type": "string", "enum": Missed.values, "default": str(Missed.SKIP)}
        ).saying("What becomes of the planned times that passed meanwhile.")
    },
    read=read_missed,
)
MADE = Answer(JobMade, "It is made, and so is its first run.", {"Location": "Its address."})
MADE_BEFORE = Answer(JobMade, "It was made before, with this key.", {"Location": "Its address."})
SHOWN = Answer(JobShown, "The job as it is now.", ETAG)


class JobList(RestView):
    @documented("Jobs", query=LIST_PARAMETERS, answers={200: JobPage})
    def get(self, request: Request) -> Response:
        """Those that the user may see. Texts are compared as they are, but for `search`."""
        limit, order = self.query.get("limit", parameters.DEFAULT_LIMIT), self.query.get("ordering")
        jobs = narrowed(JobFilter, visible_jobs(self.user), self.query)
        found = ORDERS.page(jobs, order, self.query.get("cursor"), limit + 1)
        shown = found[:limit]
        due = next_runs(shown)
        return page(
            request,
            only([job_json(job, due.get(job.id)) for job in shown], self.query.get("fields")),
            more=len(found) > limit,
            cursors=[str(ORDERS.place_of(job, order)) for job in shown],
        )

    @documented("Make a job", body=JOB, takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(409,))
    @once_per_key(lambda view: services.require_right_to_make(view.given, view.user))
    def post(self, request: Request) -> Response:
        """The job and its first run are made together. 409: its owner has a job of that name, or the key was
        used for another request."""
        made = services.create_job(self.given, self.user, utcnow())
        body = {
            "jobId": str(made.job.id),
            "firstExecutionId": str(made.first_execution_id),
            "nextRunAt": time_text(made.next_run_at),
        }
        return Response(
            body, status=HTTPStatus.CREATED, headers={"Location": f"{request.path}/{made.job.id}"}
        )


class JobDetail(RestView):
    in_path = JOB_ID

    @documented("One job", answers={200: SHOWN})
    def get(self, request: Request, job_id: str) -> Response:
        """What it is made of, and how it stands."""
        return _shown(find_job(parameters.identity(job_id), self.user))

    @documented("Change a job", body=JOB_CHANGES, takes=MATCHING, answers={200: SHOWN}, errors=(409, 412))
    def patch(self, request: Request, job_id: str) -> Response:
        """The fields that are to be others; the rest stays. Runs that wait follow at once. 409: its owner has
        another job of that name."""
        identity = parameters.identity(job_id)
        with transaction.atomic():
            job = find_job(identity, self.user, lock=True)
            require_match(request, definition_body(job))
            definition = replace(read_definition(changed_body(job, self.given)), managed_by=job.managed_by)
            services.update_job(job, definition, self.user, utcnow())
        return _shown(find_job(identity, self.user))

    @documented("Delete a job", answers={204: None})
    def delete(self, request: Request, job_id: str) -> Response:
        """What waits is cancelled, what runs goes on, its history stays, its name is free. What is deleted
        already is not there: 404."""
        job = find_job(parameters.identity(job_id), self.user)
        services.archive_job(job, self.user, utcnow())
        return Response(status=HTTPStatus.NO_CONTENT)


class JobPause(RestView):
    in_path = JOB_ID

    @documented("Pause a job", answers={200: SHOWN})
    def post(self, request: Request, job_id: str) -> Response:
        """Nothing of it starts any more; what runs goes on. Twice is once."""
        job = find_job(parameters.identity(job_id), self.user)
        return _shown(services.pause_job(job, self.user, utcnow()))


class JobResume(RestView):
    in_path = JOB_ID

    @documented("Resume a job", body=RESUMING, answers={200: SHOWN})
    def post(self, request: Request, job_id: str) -> Response:
        """It goes on. Twice is once."""
        job = find_job(parameters.identity(job_id), self.user)
        return _shown(services.resume_job(job, self.user, utcnow(), self.given))


def _shown(job: Job) -> Response:
    shown = job_json(job, next_runs([job]).get(job.id))
    return Response(shown, headers={"ETag": tag_of(definition_body(job))})
