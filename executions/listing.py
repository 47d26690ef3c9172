"""Reads executions for people: newest or oldest first, by key, without a COUNT, whatever the table's size.

A page is found by its ids alone, from the index on (owner, id), (job, id) or the primary key (pages.py).
For a member of several teams it is the newest of each team's newest: no index serves
``owner_id IN (…) ORDER BY id`` without reading on through other teams' rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from access.audit import About, note
from access.levels import Level
from access.policy import User, require, require_level, sees_all, team_ids, teams_seen_by
from executions.ids import lowest_id
from executions.models import Execution, ExecutionEvent
from executions.pages import NEWEST, Order, Page, page_of
from executions.states import State, Trigger
from scheduler_project.kernel.errors import NotFound

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which executions. ``teams``: None for all; ``since`` and ``until``: half-open, over scheduled_for.

    Of ``states``, ``reasons`` and ``triggers`` any one; empty does not restrict. ``attempt``: the latest.
    """

    teams: frozenset[int] | None = None
    job_id: UUID | None = None
    states: tuple[State, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    reasons: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    attempt: int | None = None


def listed(selection: Selection, *, after: UUID | None = None, limit: int, order: Order = NEWEST) -> Page:
    """A page of at most ``limit`` beyond the id ``after``; the latest due first, or as ``order`` says."""
    rows, sift = selected(selection), sifted(selection)
    return page_of(rows, selection.teams, sift, after=after, limit=limit, order=order)


def selected(selection: Selection) -> QuerySet[Execution]:
    """The rows of a selection as far as an index finds them, of whichever team."""
    found = between(Execution.objects.all(), selection.since, selection.until)
    if selection.job_id is not None:
        found = found.filter(job_id=selection.job_id)
    return going_on(found, selection.states) if is_going_on(selection.states) else found


def sifted(selection: Selection) -> Q | None:
    """What its rows are sifted by, since no index knows it."""
    return all_of(
        [
            sift_of(selection.states),
            Q(reason__in=selection.reasons) if selection.reasons else None,
            Q(trigger__in=[str(each) for each in selection.triggers]) if selection.triggers else None,
            Q(attempt=selection.attempt) if selection.attempt is not None else None,
        ]
    )


def all_of(sifts: Iterable[Q | None]) -> Q | None:
    """What passes each of these; None where there is none."""
    found = [sift for sift in sifts if sift is not None]
    return Q(*found) if found else None


def sift_of(states: Collection[State]) -> Q | None:
    return Q(state__in=[str(state) for state in states]) if states and not is_going_on(states) else None


def is_going_on(states: Collection[State]) -> bool:
    """Whether all of these are states of runs that the scheduler looks at: few, whatever the history."""
    return bool(states) and set(states) <= {State.WAITING, State.ACTIVE}


def going_on(found: QuerySet[Execution], states: Collection[State]) -> QuerySet[Execution]:
    """Those in ``states`` that ``is_going_on``: the partial index of what is looked at knows them."""
    return found.filter(state__in=[str(state) for state in states], check_at__isnull=False)


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


def retries_of(execution: Execution) -> list[UUID]:
    """The runs that do its work once more, by the index on (job, id): they share its planned time."""
    found = between(Execution.objects.filter(job_id=execution.job_id), execution.scheduled_for, None)
    found = found.filter(id__lt=lowest_id(execution.scheduled_for + _MILLISECOND), retry_of=execution.id)
    return list(found.order_by("created_at", "id").values_list("id", flat=True))


def require_run(user: User, level: Level, execution_id: UUID) -> None:
    """Forbidden, unless ``user`` may do what needs ``level`` with this run; NotFound where he sees none."""
    require_level(user, level)
    if sees_all(user):
        return
    owner = Execution.objects.filter(id=execution_id).values_list("owner_id", flat=True).first()
    if owner is None or owner not in team_ids(user):
        raise NotFound(f"There is no execution {execution_id}.")
    require(user, level, owner)


def note_run(execution_id: UUID, user: User, action: str, fields: Mapping[str, Any] | None = None) -> None:
    """Note in the audit trail what ``user`` did to this run; in the transaction that does it."""
    run = Execution.objects.get(id=execution_id)
    note(run, user, action, None, fields, About(run.owner_id, run.job_id, f"run {run.id}"))


def events_of(execution: Execution) -> list[ExecutionEvent]:
    """Its history; timeline.py puts it in order."""
    return list(ExecutionEvent.objects.filter(execution_id=execution.id))


def team_names(executions: Collection[Execution]) -> dict[int, str]:
    """What the teams that own these are called now."""
    ids = {execution.owner_id for execution in executions}
    return dict(Group.objects.filter(id__in=ids).values_list("id", "name"))
