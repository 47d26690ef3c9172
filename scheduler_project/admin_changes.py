"""The audit trail in the admin: to look at. Nobody adds, changes or deletes anything there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from unfold.admin import ModelAdmin

from access.admin_pages import NotThere
from access.audit import newest_of, shown, value_text
from access.policy import teams_seen_by
from access.trail.models import ChangeRecord
from executions.admin_cells import NOTHING, job_link, time_cell
from executions.admin_listing import KeysetList

if TYPE_CHECKING:  # at run time the class takes no parameter
    _ModelAdmin = admin.ModelAdmin[ChangeRecord]
else:
    _ModelAdmin = ModelAdmin

JOB = "job"


class NewestChanges(KeysetList):
    """``?job=`` shows those of one job."""

    job: UUID | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        self.job = self.taken(JOB)
        found = super().get_queryset(request, exclude_parameters)
        return found if self.job is None else found.filter(job_id=self.job)

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        found = newest_of(self.queryset, teams_seen_by(request.user), self.before, size + 1)
        then = found[size - 1].id if len(found) > size else None
        self.show(found[:size], then, **({JOB: str(self.job)} if self.job else {}))


class ChangeRecordAdmin(NotThere, _ModelAdmin):
    list_display = ("at", "who", "what", "subject", "differences", "origin")
    list_display_links = None
    list_per_page = 50
    empty_value_display = NOTHING
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    actions = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestChanges]:
        return NewestChanges

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Changes", **(extra_context or {})})

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """The list says all."""
        record = self.get_object(request, object_id)
        if record is None or not self.has_view_permission(request, record):
            raise Http404(f"There is no change {object_id}.")
        return self.changelist_view(request)

    # --- who may do what -------------------------------------------------------------------

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: ChangeRecord | None = None) -> bool:
        """Anyone of the staff; of a change, where it is their teams'. The list holds only those."""
        seen = teams_seen_by(request.user)
        theirs = obj is None or seen is None or obj.team_id in seen
        return theirs and bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ChangeRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ChangeRecord | None = None) -> bool:
        return False

    # --- what is shown ---------------------------------------------------------------------

    @admin.display(description="When")
    def at(self, record: ChangeRecord) -> str:
        return time_cell(record.timestamp)

    @admin.display(description="Subject")
    def subject(self, record: ChangeRecord) -> str:
        name = shown(record).subject
        return name if record.job_id is None else job_link(record.job_id, name)

    @admin.display(description="Before → after")
    def differences(self, record: ChangeRecord) -> str:
        changed = shown(record).fields.items()
        rows = format_html_join(
            "\n",
            "<li><b>{}</b>: {} → {}</li>",
            ((name, _text(before), _text(after)) for name, (before, after) in changed),
        )
        return format_html('<ul class="punctual-diff">{}</ul>', rows) if rows else NOTHING

    @admin.display(description="From")
    def origin(self, record: ChangeRecord) -> str:
        token = shown(record).token
        return ", ".join(filter(None, [record.remote_addr, f"token {token}" if token else ""])) or NOTHING


def _text(value: Any) -> str:
    text = value_text(value) or NOTHING
    return text if len(text) <= 200 else f"{text[:200]}…"
