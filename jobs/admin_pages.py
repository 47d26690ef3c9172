"""The admin's pages of one job that ask first: run with parameters, backfill, a copy to be added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from rest_framework.exceptions import ParseError

from access.levels import Level
from access.policy import may
from executions.admin_cells import time_cell
from executions.api.parameters import identity
from executions.api.parsing import read_object
from jobs.admin_asking import BackfillForm, RunForm
from jobs.api.previews import PREVIEW, preview_asked_for, preview_json
from jobs.backfills import BackfilledRun
from jobs.listing import find_job
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidFields, InvalidValue, NotFound

PLANNED_SHOWN = 200  # rows of a dry run; a span with more is counted, not listed

if TYPE_CHECKING:  # at run time it is mixed into one
    _Base = admin.ModelAdmin[Job]
else:
    _Base = object


class AskingPages(_Base):
    """Mixed into the job's ModelAdmin."""

    def asking_urls(self) -> list[URLPattern]:
        views = {"run-with": self.run_with_view, "backfill": self.backfill_view}
        preview = self.admin_site.admin_view(self.preview_view)
        asking = [
            path(
                f"<path:object_id>/{word}/",
                self.admin_site.admin_view(view),
                name=f"jobs_job_{word.replace('-', '_')}",
            )
            for word, view in views.items()
        ]
        return [path("preview/", preview, name="jobs_job_preview"), *asking]

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """POST, a body as of REST's preview: the same answer. What is not a schedule yet is no failure of a
        request but what is told while somebody types: 200 with ``errors``."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            preview = preview_asked_for(PREVIEW(read_object(request.body)), request.user)
        except InvalidFields as error:
            return JsonResponse({"errors": error.errors})
        except (NotFound, ParseError) as error:
            return JsonResponse({"errors": {"schedule": [str(error)]}})
        return JsonResponse(preview_json(preview))

    def job_to_copy(self, request: HttpRequest) -> Job | None:
        """The one that ``?from=`` names, if the user may see it."""
        given = request.GET.get("from")
        if not given:
            return None
        try:
            return find_job(identity(given), request.user)
        except (InvalidValue, NotFound):
            return None

    def run_with_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET: the job's parameters to be changed. POST ``show``: what it would be; else: run it so."""
        job, now = self._operated(request, object_id), utcnow()
        form = RunForm(request.POST if request.method == "POST" else None, job=job, user=request.user)
        shown = None
        if request.method == "POST" and form.is_valid():
            if "show" in request.POST:
                shown = form.would_run(now)
            elif (run := form.start(now)) is not None:
                messages.success(request, f"This run of {job.name} was made, {run.when}.")
                address = reverse("admin:executions_execution_change", args=[run.execution_id])
                return HttpResponseRedirect(address)
        return self._page(request, "run_with", job, "Run with parameters", {"form": form, "rendered": shown})

    def backfill_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET: asks for a span. POST: the plan (a dry run); with ``make``: the runs."""
        job, now = self._operated(request, object_id), utcnow()
        data = request.POST if request.method == "POST" else None
        form = BackfillForm(data, job=job, user=request.user, now=now)
        plan: list[BackfilledRun] | None = None
        if request.method == "POST" and form.is_valid():
            if "make" not in request.POST:
                plan = form.plan()
            elif (made := form.make()) is not None:
                return self._made(request, job, made)
        return self._page(request, "backfill", job, "Backfill", {"form": form, **_planned(plan)})

    def _made(self, request: HttpRequest, job: Job, made: list[BackfilledRun]) -> HttpResponse:
        new = sum(run.new for run in made)
        address = f"{reverse('admin:executions_execution_changelist')}?job={job.id}"
        there = len(made) - new
        rest = f" {there} of {len(made)} were there already." if there else ""
        runs = "1 run was" if new == 1 else f"{new} runs were"
        text = '{} made.{} <a href="{}">See the runs</a>.'
        messages.success(request, format_html(text, runs, rest, address))
        return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job.id]))

    def _operated(self, request: HttpRequest, object_id: str) -> Job:
        """The job, for somebody who may run it."""
        try:
            job = find_job(identity(object_id), request.user)
        except (InvalidValue, NotFound) as error:
            raise Http404(error.message) from error
        if not may(request.user, Level.OPERATE, job.owner_id):
            raise PermissionDenied
        return job

    def _page(
        self, request: HttpRequest, name: str, job: Job, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        common = {**self.admin_site.each_context(request), "opts": self.opts, "original": job, "title": title}
        errors = context["form"].errors
        return TemplateResponse(
            request, f"admin/jobs/job/{name}.html", {**common, "errors": errors, **context}
        )


def _planned(plan: list[BackfilledRun] | None) -> dict[str, Any]:
    if plan is None:
        return {"plan": None}
    return {
        "plan": [(time_cell(run.scheduled_for), run.new) for run in plan[:PLANNED_SHOWN]],
        "planned": len(plan),
        "new": sum(run.new for run in plan),
    }
