"""Executions in the admin: to look at and to cancel; nothing can be added, changed or deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from executions.admin_cells import (
    NOTHING,
    job_link,
    json_cell,
    length_cell,
    state_cell,
    state_class,
    text_cell,
    time_cell,
)
from executions.admin_listing import DueFilter, JobFilter, NewestFirst, StateFilter, TeamFilter, visible
from executions.api.parameters import identity, instant
from executions.api.presentation import due_at, row_of, time_text
from executions.listing import events_of, find_execution, team_names
from executions.logs import log_store, log_tail
from executions.models import Execution
from executions.rescheduling import reschedule_execution
from executions.services import Cancelling, cancel_execution
from executions.standing import Standing, describe_standing
from executions.states import TERMINAL, State
from executions.timeline import Span, in_order, seconds_in_state, spans
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue, NotFound, RetryableError

PICTURE_WIDTH = 1000.0  # units of the drawing, whatever its size on the screen
LEAST_WIDTH = 4.0


if TYPE_CHECKING:  # at run time the class takes no parameter
    _ModelAdmin = admin.ModelAdmin[Execution]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(Execution)
class ExecutionAdmin(_ModelAdmin):
    list_display = ("due", "status", "job", "late", "duration", "attempt", "exit_code", "why", "owner")
    list_display_links = ("due",)
    list_filter = (StateFilter, DueFilter, TeamFilter, JobFilter)
    list_per_page = 50
    empty_value_display = NOTHING
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    actions = None
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("job", "owner", "status", "why", "message", "exit_code", "attempt", "worker")}),
        (
            "Times (UTC)",
            {"fields": ("due", "to_start", "queued", "started", "finished", "lateness", "duration")},
        ),
        ("What was to run", {"fields": ("kind", "command", "image", "parameters", "trigger", "identity")}),
    )
    readonly_fields: ClassVar = [name for _, part in fieldsets for name in part["fields"]]

    class Media:
        css: ClassVar = {"all": ["executions/admin.css"]}

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
        return super().changelist_view(request, {"title": "Executions", **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        cancel = self.admin_site.admin_view(self.cancel_view)
        move = self.admin_site.admin_view(self.reschedule_view)
        return [
            path("<path:object_id>/cancel/", cancel, name="executions_execution_cancel"),
            path("<path:object_id>/reschedule/", move, name="executions_execution_reschedule"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        execution, now = context["original"], utcnow()
        events = events_of(execution)
        states = spans(row_of(execution), events)
        context.update(
            title=f"Run of {execution.spec.body['job_name']}",
            subtitle=None,
            picture=draw(states),
            states=[_state_row(span) for span in states],
            standing=describe_standing(_standing(execution), now),
            totals=[
                (state_cell(state), length_cell(timedelta(seconds=seconds)))
                for state, seconds in seconds_in_state(states, now).items()
            ],
            events=[(time_cell(event.at, exact=True), event) for event in in_order(events)],
            starts_at=time_text(due_at(execution)),
            log=log_tail(execution),
            logs=log_store().attempts(execution.id),
            can_cancel=execution.state not in TERMINAL,
            can_move=execution.state == State.WAITING,
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST: cancel this run, or ask its worker to stop it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            execution = find_execution(identity(object_id), request.user)
            done = cancel_execution(execution.id, request.user.get_username(), utcnow())
        except NotFound as error:
            raise Http404(error.message) from error
        except Conflict as error:
            messages.warning(request, error.message)
        else:
            self.log_change(request, execution, "Cancelled.")
            if done is Cancelling.CANCELLED:
                messages.success(request, "The run is cancelled.")
            else:
                messages.info(request, "The worker of this run has been asked to stop it.")
        return HttpResponseRedirect(reverse("admin:executions_execution_change", args=[object_id]))

    def reschedule_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST: let this run, which waits, start ``at`` another time."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            at = instant(request.POST.get("at", "").strip(), "at")
            execution = find_execution(identity(object_id), request.user)
            due = reschedule_execution(execution.id, at, request.user.get_username(), utcnow())
        except NotFound as error:
            raise Http404(error.message) from error
        except (Conflict, InvalidFields, InvalidValue, RetryableError) as error:
            messages.error(request, f"The run was not moved: {error.message}")
        else:
            self.log_change(request, execution, f"Moved to {time_text(due)}.")
            messages.success(request, f"The run is due at {time_text(due)} now.")
        return HttpResponseRedirect(reverse("admin:executions_execution_change", args=[object_id]))

    # --- what is shown ---------------------------------------------------------------------

    @admin.display(description="Due (UTC)")
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

    @admin.display(description="To be sent")
    def to_start(self, execution: Execution) -> str:
        return time_cell(due_at(execution))

    @admin.display(description="Queued")
    def queued(self, execution: Execution) -> str:
        return time_cell(execution.queued_at)

    @admin.display(description="Started")
    def started(self, execution: Execution) -> str:
        return time_cell(execution.started_at)

    @admin.display(description="Finished")
    def finished(self, execution: Execution) -> str:
        return time_cell(execution.finished_at)

    @admin.display(description="Started after it was due")
    def lateness(self, execution: Execution) -> str:
        """Of the latest attempt."""
        started = execution.started_at
        return length_cell(None if started is None else started - execution.scheduled_for)

    @admin.display(description="Late by")
    def late(self, execution: Execution) -> str:
        """Of the first attempt; later ones have waited on purpose."""
        return self.lateness(execution) if execution.attempt == 1 else NOTHING

    @admin.display(description="Duration")
    def duration(self, execution: Execution) -> str:
        """From start to end of the latest attempt; so far, where it still runs."""
        if execution.started_at is None or execution.state in {State.WAITING, State.PAUSED}:
            return NOTHING
        return length_cell((execution.finished_at or utcnow()) - execution.started_at)

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


def _standing(execution: Execution) -> Standing:
    return Standing(
        state=State(execution.state),
        attempt=execution.attempt,
        reason=execution.reason,
        message=execution.message,
        worker=execution.worker,
        due=due_at(execution),
        queued_at=execution.queued_at,
        started_at=execution.started_at,
        asked_to_stop=execution.cancel_requested_at is not None,
    )


def _state_row(span: Span) -> dict[str, Any]:
    ended = span.state in TERMINAL
    return {
        "state": state_cell(span.state),
        "attempt": span.attempt,
        "since": time_cell(span.since, exact=True),
        "until": NOTHING if ended else time_cell(span.until, exact=True),
        "length": NOTHING if ended else length_cell(span.length(utcnow())),
    }


def draw(states: list[Span]) -> list[dict[str, Any]]:
    """The bars of the picture: as wide as the states were long, but never too thin to be seen."""
    now = utcnow()
    lengths = [0.0 if span.state in TERMINAL else span.length(now).total_seconds() for span in states]
    if not any(lengths):
        lengths = [1.0] * len(states)
    scale = (PICTURE_WIDTH - LEAST_WIDTH * len(states)) / sum(lengths)
    bars, left = [], 0.0
    for span, length in zip(states, lengths, strict=True):
        width = LEAST_WIDTH + length * scale
        title = f"{span.state}, attempt {span.attempt}: {length:.3f} s"
        bars.append(
            {"x": f"{left:.1f}", "width": f"{width:.1f}", "kind": state_class(span.state), "title": title}
        )
        left += width
    return bars
