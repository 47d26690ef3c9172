"""Jobs in the admin.

A job is made and changed by the same functions as over REST, so that its runs follow. One that has
been deleted is kept for its history: it is hidden in the list unless asked for, and only looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin as UnfoldAdmin
from unfold.forms import AdminForm

from access.admin_pages import NotThere
from access.levels import Level
from access.policy import level_of, may, sees_all, team_ids
from executions.admin_cells import NOTHING, json_cell, runs_link, text_cell, time_cell
from executions.api.parameters import identity
from jobs import services
from jobs.admin_cells import (
    condition_cell,
    latest_run_cell,
    next_run_cell,
    options_text,
    with_runs,
)
from jobs.admin_forms import JobForm, copy_of
from jobs.admin_page import job_page, retries_text
from jobs.admin_pages import AskingPages
from jobs.admin_pools import PoolAdmin
from jobs.admin_tasks import TaskAdmin
from jobs.definitions import read_missed
from jobs.listing import find_job, visible_jobs
from jobs.models import Job, Missed, Pool, Task
from jobs.runs import run_job
from jobs.stored_schedules import schedule_text
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidFields, NotFound

if TYPE_CHECKING:  # at run time the class takes no parameter
    _JobAdmin = admin.ModelAdmin[Job]
else:
    _JobAdmin = UnfoldAdmin


admin.site.register(Pool, PoolAdmin)
admin.site.register(Task, TaskAdmin)


_OF_THE_MISSED = {
    Missed.SKIP: "what was due meanwhile is skipped",
    Missed.RUN_LATEST: "of what was due meanwhile the latest run is made",
    Missed.RUN_ALL: "all that was due meanwhile is run",
}


class JobChangeList(ChangeList):
    """The list with the next run and the latest of each job on the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = with_runs(list(self.result_list))


class DeletedFilter(admin.SimpleListFilter):
    """Jobs that are there; the deleted ones where asked for."""

    title = "deleted"
    parameter_name = "deleted"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        everything, *others = super().choices(changelist)
        yield {**everything, "display": "No"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        return queryset.filter(archived_at__isnull=self.value() != "yes")


@admin.register(Job)
class JobAdmin(NotThere, AskingPages, _JobAdmin):
    list_display = ("name", "condition", "latest_run", "next_run", "schedule_shown", "type", "owner")
    list_filter = (DeletedFilter, "type", ("owner", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("owner", "task")
    search_fields = ("name",)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    empty_value_display = NOTHING
    sortable_by = ("name", "owner", "type")
    actions = ("run_now", "pause", "resume", "delete_jobs")
    fieldsets: ClassVar[Any] = (
        (
            None,
            {
                "fields": (
                    "name",
                    "owner",
                    "description",
                    "condition",
                    "latest_run",
                    "schedule_shown",
                    "next_run",
                    "runs",
                )
            },
        ),
        (
            "What runs",
            {
                "fields": (
                    "type",
                    "task",
                    "command_shown",
                    "image",
                    "parameters_shown",
                    "env_shown",
                    "container_shown",
                )
            },
        ),
        ("When it fails", {"fields": ("retries_shown", "timeout_shown")}),
        ("Where, and how many at once", {"fields": ("queue", "priority", "pool", "max_active")}),
        ("Origin", {"fields": ("created_at_shown", "created_by", "id")}),
    )
    form_fieldsets = (
        (None, {"fields": ("name", "owner", "description", "schedule")}),
        ("What runs", {"fields": ("type", "command", "image", "parameters", "env", "container")}),
        (
            "When it fails",
            {
                "fields": (
                    "timeout",
                    "retries",
                    "retryDelay",
                    "retryBackoff",
                    "retryFactor",
                    "retryMaxDelay",
                    "retryJitter",
                    "retryReasons",
                    "retryExitCodes",
                    "retryMaxElapsed",
                )
            },
        ),
        (
            "When it is late or still runs",
            {"fields": ("overlap", "misfire", "misfireMaxAge", "misfireMaxCount", "jitter")},
        ),
        ("Where, and how many at once", {"fields": ("queue", "priority", "pool", "maxActive")}),
    )
    readonly_fields: ClassVar = [name for _, part in fieldsets for name in part["fields"]]

    # --- who may do what -------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return visible_jobs(request.user, archived=True).order_by("name")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """Anyone of the staff; the queryset holds only what belongs to their teams."""
        return bool(request.user.is_active and request.user.is_staff)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """For the actions; the queryset and the services hold each job's team."""
        return self.has_view_permission(request) and level_of(request.user) >= Level.OPERATE

    def has_edit_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request) and level_of(request.user) >= Level.EDIT

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_edit_permission(request) and (sees_all(request.user) or bool(team_ids(request.user)))

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return self.has_edit_permission(request) and (obj is None or obj.archived_at is None)

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    # --- pages -----------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[JobChangeList]:
        return JobChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Jobs", **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        act = self.admin_site.admin_view(self.act_view)
        acts = [
            path(f"<path:object_id>/{what}/", act, {"what": what}, name=f"jobs_job_{what}")
            for what in ("run", "pause", "resume", "archive")
        ]
        return [*acts, *self.asking_urls(), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A form of its own, since saving a job is not saving a row."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        copied = self.job_to_copy(request)
        initial = None if copied is None else copy_of(copied)
        form = JobForm(request.POST if request.method == "POST" else None, user=request.user, initial=initial)
        if request.method == "POST" and form.is_valid() and (made := form.save(utcnow())) is not None:
            return self.response_add(request, made)
        return self._form_page(request, form, None, form_url, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The same form; a job that may not be changed is shown."""
        job = self.get_object(request, object_id)
        if job is None or not self.has_change_permission(request, job):
            return super().change_view(request, object_id, form_url, extra_context)
        form = JobForm(request.POST if request.method == "POST" else None, user=request.user, job=job)
        if request.method == "POST" and form.is_valid() and (changed := form.save(utcnow())) is not None:
            return self.response_change(request, changed)
        return self._form_page(request, form, job, form_url, extra_context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        job: Job | None = context.get("original")
        if job is not None:
            context.update(
                **job_page(job, utcnow()),
                may_operate=may(request.user, Level.OPERATE, job.owner_id),
                may_edit=may(request.user, Level.EDIT, job.owner_id),
            )
        return super().render_change_form(request, context, *args, **kwargs)

    def _form_page(
        self,
        request: HttpRequest,
        form: JobForm,
        job: Job | None,
        form_url: str,
        extra_context: dict[str, Any] | None,
    ) -> HttpResponse:
        page = AdminForm(form, self.form_fieldsets, {}, model_admin=self)
        context = {
            **self.admin_site.each_context(request),
            "title": "Add job" if job is None else "Change job",
            "subtitle": job,
            "adminform": page,
            "original": job,
            "object_id": None if job is None else str(job.pk),
            "is_popup": False,
            "to_field": None,
            "media": self.media + page.media,
            "inline_admin_formsets": [],
            "errors": helpers.AdminErrorList(form, []),  # type: ignore[arg-type]
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        new = job is None
        return self.render_change_form(request, context, add=new, change=not new, form_url=form_url, obj=job)

    def act_view(self, request: HttpRequest, object_id: str, what: str) -> HttpResponse:
        """POST: run, pause, resume or delete this job."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            job = find_job(identity(object_id), request.user)
        except NotFound as error:
            raise Http404(error.message) from error
        acts = {"run": self._run, "pause": self._pause, "resume": self._resume, "archive": self._archive}
        acts[what](request, job)
        return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[object_id]))

    @admin.action(description="Run the selected jobs now", permissions=["operate"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job in queryset:
            self._run(request, job)

    @admin.action(description="Pause the selected jobs", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job in queryset:
            self._pause(request, job)

    @admin.action(description="Resume the selected jobs, without what they missed", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for job in queryset:
            self._resume(request, job)

    @admin.action(description="Delete the selected jobs; their history stays", permissions=["edit"])
    def delete_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Asks first; the answer comes back as the same action with ``confirmed``."""
        if "confirmed" not in request.POST:
            context = {**self.admin_site.each_context(request), "title": "Delete these jobs?"}
            context |= {"jobs": queryset, "opts": self.opts, "checkbox": helpers.ACTION_CHECKBOX_NAME}
            return TemplateResponse(request, "admin/jobs/job/delete_jobs.html", context)
        for job in queryset:
            self._archive(request, job)
        return None

    def _pause(self, request: HttpRequest, job: Job) -> None:
        services.pause_job(job, request.user, utcnow())
        self._done(request, job, "is paused")

    def _resume(self, request: HttpRequest, job: Job) -> None:
        try:
            missed = read_missed({"missed": request.POST.get("missed", str(Missed.SKIP))})
        except InvalidFields as error:
            messages.error(request, str(error))
            return
        services.resume_job(job, request.user, utcnow(), missed)
        self._done(request, job, f"goes on; {_OF_THE_MISSED[missed]}")

    def _archive(self, request: HttpRequest, job: Job) -> None:
        services.archive_job(job, request.user, utcnow())
        self._done(request, job, "is deleted; its history stays")

    def _done(self, request: HttpRequest, job: Job, what: str) -> None:
        messages.success(request, f"{job.name} {what}.")

    def _run(self, request: HttpRequest, job: Job) -> None:
        run = run_job(job, request.user, utcnow())
        address = reverse("admin:executions_execution_change", args=[run.execution_id])
        text = 'A run of {} was made, {}: <a href="{}">see the run</a>.'
        messages.success(request, format_html(text, job.name, run.when, address))

    # --- what is shown ---------------------------------------------------------------------

    @admin.display(description="Condition")
    def condition(self, job: Job) -> str:
        return condition_cell(job)

    @admin.display(description="Latest run")
    def latest_run(self, job: Job) -> str:
        return latest_run_cell(job)

    @admin.display(description="Schedule")
    def schedule_shown(self, job: Job) -> str:
        return schedule_text(job.schedule)

    @admin.display(description="Next run")
    def next_run(self, job: Job) -> str:
        return next_run_cell(job, utcnow())

    @admin.display(description="Runs")
    def runs(self, job: Job) -> str:
        return runs_link(job.id, "All runs of this job")

    @admin.display(description="Command")
    def command_shown(self, job: Job) -> str:
        return text_cell(job.command)

    @admin.display(description="Parameters")
    def parameters_shown(self, job: Job) -> str:
        return json_cell(job.parameters)

    @admin.display(description="Environment")
    def env_shown(self, job: Job) -> str:
        return json_cell(job.env)

    @admin.display(description="Container")
    def container_shown(self, job: Job) -> str:
        return text_cell(options_text(job.container))

    @admin.display(description="Retries")
    def retries_shown(self, job: Job) -> str:
        return retries_text(job)

    @admin.display(description="Time-out")
    def timeout_shown(self, job: Job) -> str:
        return NOTHING if job.timeout is None else format_duration(job.timeout)

    @admin.display(description="Created")
    def created_at_shown(self, job: Job) -> str:
        return time_cell(job.created_at)
