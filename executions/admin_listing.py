"""The admin's list of executions: keyset pages, newest first, without a COUNT, and its filters."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from access.policy import teams_seen_by
from access.roles import teams
from executions.explanations import REASONS
from executions.listing import all_of, between, going_on, is_going_on, sift_of, team_names
from executions.models import Execution
from executions.pages import page_of
from executions.states import State, Trigger
from scheduler_project.kernel.clock import utcnow

BEFORE = "before"


class KeysetList(ChangeList):
    """The newest first, without a total: ``older`` is the address of the next page, if there is one."""

    before: UUID | None = None
    older: str = ""
    newest: str = ""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        self.before = self.taken(BEFORE)
        return super().get_queryset(request, exclude_parameters)

    def taken(self, name: str) -> UUID | None:
        """The id that the address gives under ``name``, which is no look-up."""
        given = self.filter_params.pop(name, [])
        self.params.pop(name, None)
        try:
            return UUID(given[-1]) if given else None
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-id"]

    def show(self, rows: list[Any], then: UUID | None, **kept: str) -> None:
        """``then``: the next page has the ids below; ``kept``: what stays in the addresses of the pages."""
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = self.show_admin_actions = False
        self.can_show_all, self.multi_page = True, False
        self.paginator = Paginator(rows, self.list_per_page)
        self.older = self.get_query_string({**kept, BEFORE: str(then)}) if then else ""
        self.newest = self.get_query_string(kept) if self.before else ""


class NewestFirst(KeysetList):
    looked_until: datetime | None = None

    def get_results(self, request: HttpRequest) -> None:
        sift = all_of(spec.sift() for spec in self.filter_specs if isinstance(spec, Sifting))
        teams = teams_seen_by(request.user)
        page = page_of(self.queryset, teams, sift, after=self.before, limit=self.list_per_page)
        owners = team_names(page.rows)
        for row in page.rows:
            row.owner_name = owners.get(row.owner_id, row.spec.body["owner"])  # type: ignore[attr-defined]
        self.looked_until = page.looked_until
        self.show(page.rows, page.then)


class Sifting(SimpleListFilter):
    """A filter that no index knows, for pages that look at a bounded number of rows."""

    def sift(self) -> Q | None:
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What can be meant; the page sifts it."""
        known = {value for value, _ in self.lookup_choices}
        return queryset if not self.value() or self.value() in known else queryset.none()


class ReasonFilter(Sifting):
    title = "reason"
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(reason, reason.replace("_", " ").capitalize()) for reason in sorted(REASONS)]

    def sift(self) -> Q | None:
        return Q(reason=self.value()) if self.value() else None


class TriggerFilter(Sifting):
    title = "trigger"
    parameter_name = "trigger"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(str(each), each.name.replace("_", " ").capitalize()) for each in Trigger]

    def sift(self) -> Q | None:
        return Q(trigger=self.value()) if self.value() else None


class AttemptFilter(Sifting):
    title = "attempt"
    parameter_name = "attempt"
    SIFTS: ClassVar = {
        "1": ("First", Q(attempt=1)),
        "2": ("Second", Q(attempt=2)),
        "3": ("Third", Q(attempt=3)),
        "later": ("Later", Q(attempt__gt=3)),
    }

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(value, title) for value, (title, _) in self.SIFTS.items()]

    def sift(self) -> Q | None:
        chosen = self.SIFTS.get(self.value() or "")
        return chosen and chosen[1]


class StateFilter(Sifting):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(str(state), str(state)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        states = self._states()
        if not self.value() or (states and not is_going_on(states)):
            return queryset
        return going_on(queryset, states) if states else queryset.none()

    def sift(self) -> Q | None:
        return sift_of(self._states())

    def _states(self) -> list[State]:
        value = self.value()
        return [State(value)] if value in list(State) else []


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
        seen = teams_seen_by(request.user)
        groups = teams().order_by("name")
        if seen is not None:
            groups = groups.filter(id__in=seen)
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
