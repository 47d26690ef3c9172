"""Changing a run that waits, wherever it is on its way to a worker.

A waiting run may be in the database only, in its bucket, in flight, in the queue of runs, or in
the hands of a worker that has not claimed it. What is underway cannot be called back, so each
way of sending a run has a number, its *generation*, which travels with it and which the claim
compares with the *fence* in Redis:

1. ``withdraw`` raises the generation in the row to an odd number and commits that: the run is being
   changed, and neither loader nor sweep sends it as it was;
2. it sets the fence to it, in one step with a look at the claim: whoever has claimed the attempt
   already has begun it, and the run is left alone; from now on nothing sent before can start;
3. the caller changes the rows in a transaction of its own (``redirect``, ``record``), which makes
   the generation even again;
4. after the commit ``send_again`` takes the old entries out of the window and adds the new ones.

Whoever dies between two steps leaves a row that nothing sent can start; the sweep sends it, in its
generation, when it is overdue by CHANGE_LASTS. docs/adr/0010 says why so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from executions.claims import fence
from executions.entries import Entry
from executions.pools import leave_lines
from executions.queries import REDIRECTION
from executions.scheduling import push_due_soon, window_horizon
from executions.states import State, Trigger
from executions.store import default_store
from executions.window import Window
from scheduler_project.kernel.errors import RetryableError

CHANGE_LASTS = timedelta(seconds=5)


class RunBusy(RetryableError):
    """The run changes at this moment."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A row of the queries ``live_runs`` and ``live_run``: a run that has not ended."""

    id: UUID
    job_id: UUID
    spec_id: UUID
    trigger: Trigger
    state: State
    attempt: int
    generation: int
    scheduled_for: datetime
    check_at: datetime | None
    queued_at: datetime | None
    moved_to: datetime | None

    @property
    def waits(self) -> bool:
        return self.state is State.WAITING

    def underway(self, now: datetime) -> bool:
        """Whether it waits and may be in the window or behind it already."""
        soon = self.check_at is not None and self.check_at <= window_horizon(now)
        return self.waits and (soon or self.queued_at is not None)

    @property
    def entry(self) -> Entry:
        """What the window holds of it, if it does."""
        assert self.check_at is not None  # noqa: S101 -- the constraint execution_checked_iff_waiting_or_active
        return Entry(
            execution_id=self.id,
            spec_id=self.spec_id,
            attempt=self.attempt,
            due=self.check_at,
            generation=self.generation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """What a run that waits is to be from now on; ``check_at``: when it is due. None: as it is.

    ``moved_to``: somebody gives it this time, whatever its job's schedule says.
    """

    spec_id: UUID
    check_at: datetime
    owner_id: int | None = None
    reason: str | None = None
    message: str | None = None
    moved_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The runs that cannot start until they are sent again, and those that had begun."""

    runs: dict[UUID, LiveRun]
    begun: frozenset[UUID]

    def check(self, run: LiveRun, now: datetime) -> None:
        """RunBusy where ``run``, locked now, may be underway and is not as it was when it was called back."""
        known = self.runs.get(run.id)
        same = known is not None and known.generation == run.generation
        if run.underway(now) and run.id not in self.begun and not same:
            raise RunBusy


NOTHING_WITHDRAWN = Withdrawn({}, frozenset())


def live_runs(job_id: UUID, *, lock: bool = False) -> list[LiveRun]:
    """The runs of a job that have not ended. ``lock``: RunBusy where another has one locked."""
    return _read("live_runs", [job_id], lock)


def live_run(execution_id: UUID, *, lock: bool = False) -> LiveRun | None:
    """One run, if it has not ended."""
    found = _read("live_run", [execution_id], lock)
    return found[0] if found else None


def _read(name: str, parameters: Sequence[UUID], lock: bool) -> list[LiveRun]:
    with connection.cursor() as cursor:
        try:
            cursor.execute(REDIRECTION[name] + ("\nFOR UPDATE NOWAIT" if lock else ""), parameters)
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise RunBusy from error
            raise
        return [live_run_of(row) for row in cursor.fetchall()]


def live_run_of(row: Sequence[Any]) -> LiveRun:
    """A row of ``live_runs``, or of a query with the same columns."""
    return LiveRun(row[0], row[1], row[2], Trigger(row[3]), State(row[4]), *row[5:])


def withdraw(runs: Iterable[LiveRun], now: datetime) -> Withdrawn:
    """Call back those of ``runs`` that are underway. In no transaction; StoreUnavailable without Redis."""
    underway = {run.id: run for run in runs if run.underway(now)}
    if not underway:
        return NOTHING_WITHDRAWN
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(REDIRECTION["raise_generations"], [sorted(underway)])
        raised = cursor.fetchall()
    fenced = fence(default_store(), raised)
    begun = frozenset(row[0] for row, free in zip(raised, fenced, strict=True) if not free)
    with connection.cursor() as cursor:
        cursor.execute(REDIRECTION["let_go"], [sorted(begun)])
    generations = {row[0]: row[2] for row in raised}
    return Withdrawn(
        {i: replace(underway[i], generation=generations[i]) for i in generations if i not in begun}, begun
    )


def redirect(changes: Sequence[tuple[LiveRun, Redirection]]) -> list[Entry]:
    """Change waiting runs, where nobody else has changed them since they were read; their new entries."""
    if not changes:
        return []
    ordered = sorted(changes, key=lambda change: change[0].id)
    runs, wanted = [run for run, _ in ordered], [change for _, change in ordered]
    with connection.cursor() as cursor:
        cursor.execute(
            REDIRECTION["redirect_runs"],
            [
                [run.id for run in runs],
                [run.attempt for run in runs],
                [run.generation for run in runs],
                [change.spec_id for change in wanted],
                [change.check_at if run.waits else None for run, change in ordered],
                [change.owner_id for change in wanted],
                [change.reason for change in wanted],
                [change.message for change in wanted],
                [change.moved_to for change in wanted],
            ],
        )
        done = {row[0] for row in cursor.fetchall()}
    return [
        replace(_changed(run), spec_id=change.spec_id, check_at=change.check_at).entry
        for run, change in ordered
        if run.id in done
    ]


def _changed(run: LiveRun) -> LiveRun:
    """As its row is after the change."""
    return replace(run, generation=run.generation + run.generation % 2)


def send_again(withdrawn: Withdrawn, entries: Sequence[Entry], now: datetime) -> None:
    """After the commit: the old entries leave the window, the new ones that are due soon enter it."""
    old = [replace(run, generation=run.generation - 1).entry for run in withdrawn.runs.values()]
    if old:
        window = Window(default_store())
        window.remove(old)
        leave_lines(window, withdrawn.runs, now)
    push_due_soon(entries, now)
