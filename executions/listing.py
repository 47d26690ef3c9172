"""Reads executions for people: newest first, by key, without a COUNT, whatever the table's size.

A page is found by its ids alone, from the index on (owner, id), (job, id) or the primary key.
For a member of several teams it is the newest of each team's newest: no index serves
``owner_id IN (…) ORDER BY id`` without reading on through other teams' rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from executions.ids import lowest_id
from executions.models import Execution, ExecutionEvent
from executions.policy import User, teams_seen_by
from executions.states import State
from scheduler_project.kernel.errors import NotFound

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which executions. ``teams``: None for all; ``since`` and ``until``: half-open, over scheduled_for."""

    teams: frozenset[int] | None = None
    job_id: UUID | None = None
    states: tuple[State, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


def newest(selection: Selection, *, before: UUID | None = None, limit: int) -> list[Execution]:
    """At most ``limit`` executions with their specs, the latest due first; only ids below ``before``."""
    return newest_of(selected(selection), selection.teams, before=before, limit=limit)


def newest_of(
    rows: QuerySet[Execution], teams: frozenset[int] | None, *, before: UUID | None, limit: int
) -> list[Execution]:
    """The same, of any rows."""
    query = ids_of(rows, teams, before=before, limit=limit)
    ids = [] if query is None else list(query)
    if not ids:
        return []
    found = Execution.objects.select_related("spec").filter(id__in=ids, id__gte=ids[-1], id__lte=ids[0])
    return sorted(found, key=lambda execution: execution.id, reverse=True)


def ids_of(
    rows: QuerySet[Execution], teams: frozenset[int] | None, *, before: UUID | None, limit: int
) -> QuerySet[Execution, UUID] | None:
    """The query that finds a page's ids; None where no team is seen."""
    if before is not None:
        rows = rows.filter(id__lt=before)
    parts = [rows] if teams is None else [rows.filter(owner_id=team) for team in sorted(teams)]
    if not parts:
        return None
    each = [part.order_by("-id").values_list("id", flat=True)[:limit] for part in parts]
    if len(each) == 1:
        return each[0]
    return each[0].union(*each[1:], all=True).order_by("-id")[:limit]


def selected(selection: Selection) -> QuerySet[Execution]:
    """The rows of a selection, of whichever team."""
    found = between(Execution.objects.all(), selection.since, selection.until)
    if selection.job_id is not None:
        found = found.filter(job_id=selection.job_id)
    return in_states(found, selection.states) if selection.states else found


def in_states(found: QuerySet[Execution], states: Collection[State]) -> QuerySet[Execution]:
    found = found.filter(state__in=[str(state) for state in states])
    if set(states) <= {State.WAITING, State.ACTIVE}:
        found = found.filter(check_at__isnull=False)  # the same rows, and the partial index knows them
    return found


def between(
    found: QuerySet[Execution], since: datetime | None, until: datetime | None
) -> QuerySet[Execution]:
    """Those due in [since, until): by bounds on the id, which prune partitions, and exactly."""
    if since is not None:
        found = found.filter(id__gte=lowest_id(since), scheduled_for__gte=since)
    if until is not None:
        found = found.filter(id__lt=lowest_id(until + _MILLISECOND), scheduled_for__lt=until)
    return found


def find_execution(execution_id: UUID, user: User) -> Execution:
    """The execution with its spec. NotFound where there is none that ``user`` may see."""
    teams = teams_seen_by(user)
    found = Execution.objects.select_related("spec").filter(id=execution_id).first()
    if found is None or (teams is not None and found.owner_id not in teams):
        raise NotFound(f"There is no execution {execution_id}.")
    return found


def events_of(execution: Execution) -> list[ExecutionEvent]:
    """Its history; timeline.py puts it in order."""
    return list(ExecutionEvent.objects.filter(execution_id=execution.id))


def team_names(executions: Collection[Execution]) -> dict[int, str]:
    """What the teams that own these are called now."""
    ids = {execution.owner_id for execution in executions}
    return dict(Group.objects.filter(id__in=ids).values_list("id", "name"))
