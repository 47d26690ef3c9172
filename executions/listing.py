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
    ids = newest_ids(selection, before=before, limit=limit)
    if not ids:
        return []
    found = Execution.objects.select_related("spec").filter(id__in=ids, id__gte=ids[-1], id__lte=ids[0])
    return sorted(found, key=lambda execution: execution.id, reverse=True)


def newest_ids(selection: Selection, *, before: UUID | None, limit: int) -> list[UUID]:
    query = newest_query(selection, before=before, limit=limit)
    return [] if query is None else list(query)


def newest_query(
    selection: Selection, *, before: UUID | None, limit: int
) -> QuerySet[Execution, UUID] | None:
    """The query behind ``newest``; None where no team is seen."""
    base = _filtered(selection, before)
    if selection.teams is None:
        parts = [base]
    else:
        parts = [base.filter(owner_id=team) for team in sorted(selection.teams)]
    if not parts:
        return None
    each = [part.order_by("-id").values_list("id", flat=True)[:limit] for part in parts]
    if len(each) == 1:
        return each[0]
    return each[0].union(*each[1:], all=True).order_by("-id")[:limit]


def _filtered(selection: Selection, before: UUID | None) -> QuerySet[Execution]:
    found = Execution.objects.all()
    if before is not None:
        found = found.filter(id__lt=before)
    if selection.job_id is not None:
        found = found.filter(job_id=selection.job_id)
    if selection.states:
        found = found.filter(state__in=[str(state) for state in selection.states])
        if not set(selection.states) - {State.WAITING, State.ACTIVE}:
            found = found.filter(check_at__isnull=False)  # the same rows, and the partial index knows them
    return between(found, selection.since, selection.until)


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
