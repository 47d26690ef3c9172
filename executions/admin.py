"""Executions in the admin: to look at, cancel, move and run again; none can be added, changed or deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin as UnfoldAdmin

from access.admin_pages import NotThere
from access.levels import Level
from access.policy import level_of
from executions.admin_cells import (
    NOTHING,
    job_link,
    json_cell,
    length_cell,
    state_cell,
    text_cell,
    time_cell,
)
from executions.admin_listing import (
    AttemptFilter,
    DueFilter,
    JobFilter,
    NewestFirst,
    ReasonFilter,
    StateFilter,
    TeamFilter,
    TriggerFilter,
    visible,
)
from executions.admin_run import live_context, run_length
from executions.api.parameters import identity, instant
from executions.api.presentation import time_text
from executions.listing import find_execution, team_names
from executions.logs import attempts_with_log, log_tail
from executions.models import Execution
from executions.rescheduling import reschedule_execution
from executions.retrying import retry_execution
from executions.services import Cancelling, cancel_execution
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue, NotFound, RetryableError

if TYPE_CHECKING:  # at run time the class takes no parameter
    _ModelAdmin = admin.ModelAdmin[Execution]
else:
    _ModelAdmin = UnfoldAdmin

HOUR = timedelta(hours=1)


@admin.register(Execution)
class ExecutionAdmin(NotThere, _ModelAdmin):
    list_display = ("due", "status", "job", "late", "duration", "attempt", "exit_code", "why", "owner")
    list_display_links = ("due",)
    list_filter = (StateFilter, ReasonFilter, DueFilter, TriggerFilter, AttemptFilter, TeamFilter, JobFilter)
    list_per_page = 50
    empty_value_display = NOTHING
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    actions = None
    fieldsets: ClassVar[Any] = (
        (
            "What was to run",
            {"fields": ("kind", "command", "image", "parameters", "owner", "trigger", "identity")},
        ),
    )
    readonly_fields: ClassVar = [name for _, part in fieldsets for name in part["fields"]]

    class Media:
        css: ClassVar = {"all": ["executions/run.css"]}
        js = ("executions/ansi.js", "executions/run.js")

    # --- who may do what -------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        return visible(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Execution | None = None) -> bool:
        """Anyone of the staff; the queryset holds only what belongs to their teams."""
        return bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Execution | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Execution | None = None) -> bool:
        return False

    # --- pages -----------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        return NewestFirst

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Runs", **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        cancel = self.admin_site.admin_view(self.cancel_view)
        move = self.admin_site.admin_view(self.reschedule_view)
        retry = self.admin_site.admin_view(self.retry_view)
        live = self.admin_site.admin_view(self.live_view)
        return [
            path("<path:object_id>/live/", live, name="executions_execution_live"),
            path("<path:object_id>/cancel/", cancel, name="executions_execution_cancel"),
            path("<path:object_id>/reschedule/", move, name="executions_execution_reschedule"),
            path("<path:object_id>/retry/", retry, name="executions_execution_retry"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        execution = context["original"]
        live = live_context(execution, utcnow())
        context.update(
            live,
            title=f"Run of {execution.spec.body['job_name']}",
            subtitle=None,
            in_an_hour=time_text((utcnow() + HOUR).replace(second=0, microsecond=0)),
            log=log_tail(execution),
            logs=attempts_with_log(execution),
            may_operate=level_of(request.user) >= Level.OPERATE,
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET: what changes on the page of a run, drawn anew."""
        try:
            execution = find_execution(identity(object_id), request.user)
        except NotFound as error:
            raise Http404(error.message) from error
        return render(request, "admin/executions/execution/live.html", live_context(execution, utcnow()))

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST: cancel this run, or ask its worker to stop it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            execution = find_execution(identity(object_id), request.user)
            done = cancel_execution(execution.id, request.user, utcnow())
        except NotFound as error:
            raise Http404(error.message) from error
        except Conflict as error:
            messages.warning(request, error.message)
        else:
            if done is Cancelling.CANCELLED:
                messages.success(request, "The run is cancelled.")
            else:
                messages.info(request, "This run has begun: its worker has been asked to stop it.")
        return HttpResponseRedirect(reverse("admin:executions_execution_change", args=[object_id]))

    def reschedule_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST: let this run, which waits, start ``at`` another time."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            at = instant(request.POST.get("at", "").strip(), "at")
            execution = find_execution(identity(object_id), request.user)
            due = reschedule_execution(execution.id, at, request.user, utcnow())
        except NotFound as error:
            raise Http404(error.message) from error
        except (Conflict, InvalidFields, InvalidValue, RetryableError) as error:
            messages.error(request, f"The run was not moved: {error.message}")
        else:
            messages.success(request, f"The run is due at {time_text(due)} now.")
        return HttpResponseRedirect(reverse("admin:executions_execution_change", args=[object_id]))

    def retry_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST: do the work of this run, which has ended, once more; leads to the new run."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            execution = find_execution(identity(object_id), request.user)
            shown: object = retry_execution(execution, request.user, utcnow())
        except NotFound as error:
            raise Http404(error.message) from error
        except Conflict as error:
            messages.warning(request, error.message)
            shown = object_id
        else:
            messages.success(request, "This run does the same work once more, by its job as it is now.")
        return HttpResponseRedirect(reverse("admin:executions_execution_change", args=[shown]))

    # --- what is shown ---------------------------------------------------------------------

    @admin.display(description="Due")
    def due(self, execution: Execution) -> str:
        return time_cell(execution.scheduled_for)

    @admin.display(description="Job")
    def job(self, execution: Execution) -> str:
        return job_link(execution.job_id, execution.spec.body["job_name"])

    @admin.display(description="Owner")
    def owner(self, execution: Execution) -> str:
        known = getattr(execution, "owner_name", None)
        return str(known or team_names([execution]).get(execution.owner_id, execution.spec.body["owner"]))

    @admin.display(description="State")
    def status(self, execution: Execution) -> str:
        return state_cell(execution.state)

    @admin.display(description="Reason")
    def why(self, execution: Execution) -> str:
        missed = f" ({execution.missed} planned)" if execution.missed else ""
        return f"{execution.reason.replace('_', ' ')}{missed}" or NOTHING

    @admin.display(description="Late by")
    def late(self, execution: Execution) -> str:
        """Of the first attempt; later ones have waited on purpose."""
        if execution.attempt > 1 or execution.started_at is None:
            return NOTHING
        return length_cell(execution.started_at - execution.wanted_at)

    @admin.display(description="Duration")
    def duration(self, execution: Execution) -> str:
        return length_cell(run_length(execution, utcnow()))

    @admin.display(description="Type")
    def kind(self, execution: Execution) -> str:
        return str(execution.spec.body["type"])

    @admin.display(description="Command")
    def command(self, execution: Execution) -> str:
        return text_cell(execution.spec.body["command"])

    @admin.display(description="Image")
    def image(self, execution: Execution) -> str:
        return execution.spec.body["image"] or NOTHING

    @admin.display(description="Parameters")
    def parameters(self, execution: Execution) -> str:
        return json_cell(execution.spec.body["parameters"])

    @admin.display(description="Id")
    def identity(self, execution: Execution) -> str:
        return str(execution.id)
