"""The admin's list of executions: keyset pages, newest first, without a COUNT, and its filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import Group
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from executions.listing import between, in_states, newest_of, team_names
from executions.models import Execution
from executions.policy import teams_seen_by
from executions.states import State
from scheduler_project.kernel.clock import utcnow

BEFORE = "before"


class NewestFirst(ChangeList):
    """A list that knows no total: ``older`` is the address of the next page, if there is one."""

    before: UUID | None = None
    older: str = ""
    newest: str = ""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        given = self.filter_params.pop(BEFORE, [])
        self.params.pop(BEFORE, None)
        try:
            self.before = UUID(given[-1]) if given else None
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error
        return super().get_queryset(request, exclude_parameters)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-id"]

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        found = newest_of(self.queryset, teams_seen_by(request.user), before=self.before, limit=size + 1)
        rows, more = found[:size], len(found) > size
        owners = team_names(rows)
        for row in rows:
            row.owner_name = owners.get(row.owner_id, row.spec.body["owner"])  # type: ignore[attr-defined]
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = self.show_admin_actions = False
        self.can_show_all, self.multi_page = True, False
        self.paginator = Paginator(rows, size)
        self.older = self.get_query_string({BEFORE: str(rows[-1].id)}) if more else ""
        self.newest = self.get_query_string() if self.before else ""


class StateFilter(SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(str(state), str(state)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        return in_states(queryset, [State(value)]) if value in list(State) else queryset.none()


class DueFilter(SimpleListFilter):
    """By bounds on the id, so that only the days in question are read."""

    title = "due"
    parameter_name = "due"
    PAST = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [
            ("ahead", "Still to come"),
            ("hour", "Past hour"),
            ("day", "Past 24 hours"),
            ("week", "Past 7 days"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value, now = self.value(), utcnow()
        if value == "ahead":
            return between(queryset, now, None)
        return between(queryset, now - self.PAST[value], now) if value in self.PAST else queryset


class TeamFilter(SimpleListFilter):
    title = "owner"
    parameter_name = "team"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        teams = teams_seen_by(request.user)
        groups = Group.objects.order_by("name")
        if teams is not None:
            groups = groups.filter(id__in=teams)
        return [(str(identity), name) for identity, name in groups.values_list("id", "name")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = {value for value, _ in self.lookup_choices}
        value = self.value()
        if not value:
            return queryset
        return queryset.filter(owner_id=int(value)) if value in known else queryset.none()


class JobFilter(SimpleListFilter):
    """Only there when a link asks for the runs of one job."""

    title = "job"
    parameter_name = "job"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        value = self.value()
        if not value:
            return []
        job_id = _uuid(value)
        rows = model_admin.get_queryset(request)
        latest = rows.filter(job_id=job_id).order_by("-id").first() if job_id else None
        return [(value, latest.spec.body["job_name"] if latest else value)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        job_id = _uuid(value)
        return queryset.filter(job_id=job_id) if job_id else queryset.none()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def visible(request: HttpRequest) -> QuerySet[Execution]:
    """The executions that the user of ``request`` may see."""
    teams = teams_seen_by(request.user)
    found = Execution.objects.select_related("spec")
    return found if teams is None else found.filter(owner_id__in=teams)
