"""Pages of executions, newest or oldest first, that read a bounded number of rows whatever is asked for.

What has an index (team, job, due time, what waits or is active) finds its rows by it. Everything else, such
as an ended state, *sifts*: of the rows that the indexes give, one window of WINDOW after the other is looked
at, until the page is full or TIME_S is over. A page may then hold fewer rows than it might, even none, and
says how far it has looked; the next one goes on from there. docs/adr/0027 says why so.

    newest ids │ window │ window │ … │ window │ ← next page begins here
                  └─ those that pass ─┘
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from uuid import UUID

from django.db.models import Q, QuerySet

from executions.ids import due_of
from executions.models import Execution
from scheduler_project.kernel.clock import monotonic

WINDOW = 5_000
TIME_S = 0.5
Rows = QuerySet[Execution]
Teams = frozenset[int] | None


@dataclass(frozen=True, slots=True)
class Order:
    """Of ids, and so of due times: which of two comes ``beyond`` the other, as look-ups of the ORM."""

    sign: str
    beyond: str
    within: str

    @property
    def by_id(self) -> str:
        return f"{self.sign}id"


NEWEST = Order("-", "lt", "gte")
OLDEST = Order("", "gt", "lte")


@dataclass(frozen=True, slots=True)
class Page:
    """``rows``: with their specs. ``then``: the next page has the ids beyond; None: this is the last.

    ``looked_until``: the due time until which this page has looked, where it has not found what it might.
    """

    rows: list[Execution]
    then: UUID | None = None
    looked_until: datetime | None = None


def page_of(
    rows: Rows, teams: Teams, sift: Q | None, *, after: UUID | None, limit: int, order: Order = NEWEST
) -> Page:
    """The first ``limit`` of ``rows`` (an indexed selection) that pass ``sift``, with ids beyond ``after``.

    ``teams``: whose rows; None: everybody's.
    """
    ids: list[UUID] = []
    end = after
    for query, end in _queries(_parts(rows, teams), sift, after, limit + 1, order):
        ids += query
        if end is None or len(ids) > limit:
            break
    if len(ids) > limit:
        return Page(_loaded(ids[:limit]), then=ids[limit - 1])
    if end is None:
        return Page(_loaded(ids))
    return Page(_loaded(ids), then=end, looked_until=due_of(end))


def _queries(
    parts: list[Rows], sift: Q | None, after: UUID | None, limit: int, order: Order
) -> Iterator[tuple[QuerySet[Execution, UUID], UUID | None]]:
    """Queries for ids, each with the id until which it has seen everything; None: to the end."""
    if not parts:
        return
    if sift is None:
        yield first_ids(parts, after, limit, order), None
        return
    until = monotonic() + TIME_S
    for number in count():
        if number and monotonic() > until:
            return
        end = _end_of_window(parts, after, order)
        window = parts if end is None else [part.filter(**{f"id__{order.within}": end}) for part in parts]
        yield first_ids([part.filter(sift) for part in window], after, limit, order), end
        after = end


def soonest_of(rows: Rows, teams: Teams, *, limit: int) -> list[Execution]:
    """At most ``limit`` of any rows, the earliest due first, with their specs."""
    parts = _parts(rows, teams)
    return _loaded(list(first_ids(parts, None, limit, OLDEST))) if parts else []


def _parts(rows: Rows, teams: Teams) -> list[Rows]:
    return [rows] if teams is None else [rows.filter(owner_id=team) for team in sorted(teams)]


def first_ids(
    parts: list[Rows], after: UUID | None, limit: int, order: Order = NEWEST
) -> QuerySet[Execution, UUID]:
    """The query for the first ids of all ``parts``, each of which an index serves."""
    return _united([_ids(part, after, order)[:limit] for part in parts], order)[:limit]


def _end_of_window(parts: list[Rows], after: UUID | None, order: Order) -> UUID | None:
    """The id until which no part has more than WINDOW rows; None where that is all of them."""
    ends = _united([_ids(part, after, order)[WINDOW - 1 : WINDOW] for part in parts], order)
    return next(iter(ends), None)


def _ids(part: Rows, after: UUID | None, order: Order) -> QuerySet[Execution, UUID]:
    beyond = part if after is None else part.filter(**{f"id__{order.beyond}": after})
    return beyond.order_by(order.by_id).values_list("id", flat=True)


def _united(each: list[QuerySet[Execution, UUID]], order: Order) -> QuerySet[Execution, UUID]:
    return each[0] if len(each) == 1 else each[0].union(*each[1:], all=True).order_by(order.by_id)


def _loaded(ids: list[UUID]) -> list[Execution]:
    """In the order of ``ids``."""
    if not ids:
        return []
    found = Execution.objects.select_related("spec").filter(id__in=ids, id__gte=min(ids), id__lte=max(ids))
    places = {identity: place for place, identity in enumerate(ids)}
    return sorted(found, key=lambda execution: places[execution.id])
