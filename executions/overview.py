"""What runs where and how it has gone lately: for the dashboard, REST and ``manage.py status``.

No question here reads the history or counts runs: minutes and troubles were counted as they happened
(tallies.py), what waits or runs is found by a partial index that knows only what has not ended, or by
the ids to come, and each reading has a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from executions.attendance import attended
from executions.bus.depths import QueueFacts, queue_facts
from executions.bus.topology import AUDITOR, DEAD, MAINTENANCE, RECORDER
from executions.folding import WAITS_LOOKED_AT
from executions.history import TIMELY
from executions.holding import FIRST_HELD
from executions.ids import lowest_id
from executions.models import Execution
from executions.pages import soonest_of
from executions.presence import PresentWorker, present_workers
from executions.priorities import DEFAULT_QUEUE, Priority, broker_queue
from executions.queries import HISTORY
from executions.states import State
from executions.store import Store
from executions.tallies import LATE_S, MINUTE, Counts, counted, minute_of, together

Teams = frozenset[int] | None
"""Whose runs; None: everybody's."""

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
OVERDUE_COUNTED = 10_000
"""More runs that should have been sent are not counted."""
RUNNING_SHOWN = 500
_LEASES = 4  # the sweep looks at what runs at least this often


@dataclass(frozen=True, slots=True)
class Flow:
    """What happened to the runs of some teams in each of the last minutes, the oldest first.

    ``minutes``: one for each minute, the last of them not over yet; ``total``: all of them. What is due and
    has not been sent counts as due. ``overdue``: how many of these there are, at most OVERDUE_COUNTED.
    """

    minutes: list[tuple[datetime, Counts]]
    total: Counts
    overdue: int


def flow(now: datetime, teams: Teams, span: timedelta = HOUR) -> Flow:
    """``span``: whole minutes, at most a day."""
    last = minute_of(now)
    first = last - span + MINUTE
    found = counted(first, last + MINUTE, teams)
    minutes = [(at, found.get(at, Counts())) for at in (first + n * MINUTE for n in range(span // MINUTE))]
    overdue = _unsent(now - DAY, now, teams)
    for at, counts in minutes:
        counts.due += overdue.get(at, 0)
    return Flow(minutes, together(counts for _, counts in minutes), sum(overdue.values()))


def _unsent(since: datetime, until: datetime, teams: Teams) -> dict[datetime, int]:
    with connection.cursor() as cursor:
        cursor.execute(HISTORY["unsent"], _due(since, until, teams))
        return dict(cursor.fetchall())


def _due(since: datetime, until: datetime, teams: Teams) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "shards": list(range(settings.PUNCTUAL_SHARDS)),
        "teams": _ids(teams),
        "limit": OVERDUE_COUNTED,
    }


@dataclass(frozen=True, slots=True)
class Unstarted:
    """Runs for a ``queue`` that are due and have not begun, sent or not: how many.

    ``since``: when the first of them was sent, or was due where it has not been; None where all wait in a
    pool's line.
    """

    queue: str
    runs: int
    since: datetime | None


def unstarted(now: datetime, teams: Teams) -> list[Unstarted]:
    """By queue, the fullest first, of at most OVERDUE_COUNTED runs. What waits for leave is not due."""
    parameters = {**_begun_or_not(now, teams), "default": DEFAULT_QUEUE}
    with connection.cursor() as cursor:
        cursor.execute(HISTORY["unstarted"], parameters)
        return [Unstarted(*row) for row in cursor.fetchall()]


def _begun_or_not(now: datetime, teams: Teams) -> dict[str, Any]:
    """Of the last day's due runs, those too that are sent: they are looked at again within some time
    (folding.py, the sweep).
    """
    looked_at = max(settings.PUNCTUAL_ENQUEUE_TIMEOUT, WAITS_LOOKED_AT * settings.PUNCTUAL_RUN_LEASE)
    return {**_due(now - DAY, now, teams), "soon": now + looked_at}


@dataclass(frozen=True, slots=True)
class Trouble:
    """How often a job failed for a ``reason``, or was late (no reason): ``count``.

    ``undone``: how many of the failed attempts another attempt followed; how many of the late runs have not
    begun yet. ``worst_s``: the greatest lateness,
    in seconds. ``latest``: the last execution that it happened to.
    """

    job_id: UUID
    reason: str
    count: int
    undone: int
    worst_s: float
    latest: UUID


def failures(now: datetime, teams: Teams, limit: int = 10) -> list[Trouble]:
    """The jobs that failed most often in the last day (by whole hours), for each reason."""
    return _trouble("trouble", {"since": _hour(now), "teams": _ids(teams), "limit": limit})


def late_starts(now: datetime, teams: Teams, limit: int = 10) -> list[Trouble]:
    """The jobs that were most often late (tallies.LATE_S) in the last day: starts, and what has not begun."""
    own = {"hour": _hour(now), "timely": TIMELY, "late_s": LATE_S, "most": limit}
    return _trouble("late", {**_begun_or_not(now, teams), **own})


def _hour(now: datetime) -> datetime:
    return (now - DAY).replace(minute=0, second=0, microsecond=0)


def _trouble(query: str, parameters: dict[str, Any]) -> list[Trouble]:
    with connection.cursor() as cursor:
        cursor.execute(HISTORY[query], parameters)
        return [Trouble(row[0], row[1], int(row[2]), int(row[3]), *row[4:]) for row in cursor.fetchall()]


def next_runs(now: datetime, teams: Teams, limit: int = 10) -> list[Execution]:
    """The waiting runs that are planned next, with their specs; what is held is not."""
    rows = Execution.objects.filter(id__gte=lowest_id(now), state=str(State.WAITING), check_at__lt=FIRST_HELD)
    return sorted(soonest_of(rows, teams, limit=limit), key=lambda run: run.check_at or run.scheduled_for)


def running(now: datetime, limit: int = RUNNING_SHOWN) -> list[Execution]:
    """Runs of all teams that are under way, with their specs: at most ``limit``, by the partial index."""
    soon = now + _LEASES * settings.PUNCTUAL_RUN_LEASE
    shards = range(settings.PUNCTUAL_SHARDS)
    rows = Execution.objects.select_related("spec").filter(
        shard__in=shards, check_at__lte=soon, state=str(State.ACTIVE)
    )
    return sorted(rows[:limit], key=lambda run: (run.worker, run.started_at or now))


@dataclass(frozen=True, slots=True)
class BusyWorker:
    """A worker and its runs. ``worker``: None where it is gone, and its runs are to be taken up by others."""

    name: str
    worker: PresentWorker | None
    runs: list[Execution] = field(default_factory=list)


def workers(store: Store | None, under_way: Iterable[Execution]) -> list[BusyWorker]:
    """Those that were there within the last seconds, by name, and what each runs; without a ``store``, those
    that have runs."""
    present = [] if store is None else present_workers(store)
    found = {worker.name: BusyWorker(worker.name, worker) for worker in present}
    for run in under_way:
        found.setdefault(run.worker, BusyWorker(run.worker, None)).runs.append(run)
    return [found[name] for name in sorted(found)]


def present_of(found: Iterable[BusyWorker]) -> list[PresentWorker]:
    """Those of them that are there."""
    return [item.worker for item in found if item.worker is not None]


@dataclass(frozen=True, slots=True)
class QueueState:
    """What waits in a queue of runs, of one priority. ``workers``: that listen there; see QueueFacts."""

    queue: str
    priority: Priority
    facts: QueueFacts
    workers: int | None


def queues(
    names: Collection[str],
    present: Collection[PresentWorker] | None,
    attending: Mapping[str, list[str]] | None,
) -> tuple[list[QueueState], Mapping[str, QueueFacts]]:
    """The queues of runs, and the system's own (recorder, auditor, maintenance, dead letters) by name.

    ``present``, ``attending``: None where nobody knows which workers, recorders and auditors are there. The
    latter count where the broker knows no consumers. BusUnavailable where the broker is away.
    """
    named = sorted({DEFAULT_QUEUE, *names, *(queue for worker in present or () for queue in worker.queues)})
    places = {(queue, priority): broker_queue(queue, priority) for queue in named for priority in Priority}
    own = (RECORDER, AUDITOR, MAINTENANCE, DEAD)
    facts = queue_facts([*places.values(), *own])
    listening = {
        queue: None if present is None else sum(queue in worker.queues for worker in present)
        for queue in named
    }
    states = [
        QueueState(queue, priority, facts[place], listening[queue])
        for (queue, priority), place in places.items()
    ]
    return states, attended({name: facts[name] for name in own}, attending)


def _ids(teams: Teams) -> list[int] | None:
    return None if teams is None else sorted(teams)
