"""Pools in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin as UnfoldAdmin

from access.admin_pages import NotThere
from access.policy import teams_seen_by
from access.roles import teams
from executions.admin_cells import NOTHING
from jobs.admin_shared import SharedByAll
from jobs.models import Pool
from jobs.pool_names import pool_name
from jobs.pools import MOST_SLOTS, delete_pool, require_pool, save_pool, usage_of, visible_pools
from scheduler_project.kernel.errors import Conflict, InvalidValue

if TYPE_CHECKING:  # at run time the class takes no parameter
    _PoolAdmin = admin.ModelAdmin[Pool]
    _PoolForm = forms.ModelForm[Pool]
else:
    _PoolAdmin = UnfoldAdmin
    _PoolForm = forms.ModelForm


class PoolForm(_PoolForm):
    slots = forms.IntegerField(
        min_value=0,
        max_value=MOST_SLOTS,
        help_text="Runs at once. Another number holds at once; 0: none begins.",
    )

    class Meta:
        model = Pool
        fields = ("name", "slots", "team", "description")

    def clean_name(self) -> str:
        try:
            return pool_name(self.cleaned_data["name"], "name")
        except InvalidValue as error:
            raise forms.ValidationError(error.message) from error


class PoolAdmin(SharedByAll, NotThere, _PoolAdmin):
    form = PoolForm
    list_display = ("name", "slots", "used", "team", "description")
    list_select_related = ("team",)
    search_fields = ("name",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pool]:
        return visible_pools(request.user)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A team of his own; of all, for who sees all."""
        seen = teams_seen_by(request.user)
        kwargs["queryset"] = teams() if seen is None else teams().filter(id__in=seen)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> Any:
        """Its runs know it by its name."""
        return () if obj is None else ("name", "team", "used")

    def has_delete_permission(self, request: HttpRequest, obj: Pool | None = None) -> bool:
        """Not while jobs name it."""
        free = obj is None or not obj.job_set.filter(archived_at=None).exists()
        return free and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Pool, form: Any, change: Any) -> None:
        require_pool(request.user, "change" if change else "add", obj.team)
        save_pool(obj)

    def delete_model(self, request: HttpRequest, obj: Pool) -> None:
        try:
            delete_pool(obj, request.user)
        except Conflict as error:
            messages.error(request, error.message)

    @admin.display(description="In use")
    def used(self, pool: Pool) -> str:
        usage = usage_of([pool]).get(pool.name)
        if usage is None:
            return NOTHING
        exceeded = f"; {usage.exceeded} times there were more" if usage.exceeded else ""
        return f"{usage.active} of {pool.slots}, {usage.waiting} waiting{exceeded}"
