"""The only writer of ``state``: batched, guarded, idempotent.

``record`` is one unit: lock the rows that the events speak of, fold the events into them
(executions/folding.py), write back what changed where nobody else has changed it, append
the follow-up events to the history, and plan what comes next. All in the caller's
transaction; what is due soon is returned, to be pushed into the window after the commit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from executions.entries import Entry
from executions.events import REATTACHED, REPORTED, Event
from executions.folding import Context, Run, Timing, fold
from executions.history import append_history
from executions.holding import is_held
from executions.planning import BegunRun, EndedRun, NewExecution, Progress, plan_next
from executions.queries import TRANSITIONS
from executions.runspecs import Spec
from executions.scheduling import window_horizon
from executions.states import TERMINAL, EventType, State, Trigger


@dataclass(slots=True)
class Recorded:
    """What a batch did: rows changed, events of no row, runs due soon, runs that are not to begin or go on.

    ``started_again``: a JOB_STARTED of each attempt that two workers have started (never promised not to
    happen, and to be counted).
    """

    changed: list[Run] = field(default_factory=list)
    unknown: list[Event] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    unwanted: list[UUID] = field(default_factory=list)
    started_again: list[Event] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Skip:
    """A waiting run that is ended, unstarted, for the ``missed`` fires that it stands for."""

    execution_id: UUID
    reason: str
    message: str
    missed: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A run that somebody wants ended. ``underway``: it waits, and may be on its way to a worker."""

    state: State
    attempt: int
    underway: bool


@dataclass(frozen=True, slots=True)
class _Locked:
    run: Run
    job_id: UUID
    spec_id: UUID
    trigger: Trigger
    scheduled_for: datetime
    catch_up_until: datetime | None
    spec: Spec


_Moved = tuple[_Locked, Run, Run]  # a row, before and after a batch


def record(events: Sequence[Event], now: datetime, *, keep: bool = False, follow: bool = True) -> Recorded:
    """Apply ``events`` to their rows. ``keep``: also append them to the history (where no auditor will).

    ``follow``: plan what comes next; False where the caller does.
    """
    rows = _lock({event.execution_id for event in events})
    done = Recorded(
        unknown=[event for event in events if event.execution_id not in rows],
        unwanted=[
            event.execution_id
            for event in events
            if event.execution_id in rows and began_unwanted(rows[event.execution_id].run, event)
        ],
    )
    by_run: dict[UUID, list[Event]] = defaultdict(list)
    for event in events:
        by_run[event.execution_id].append(event)
    before = {identity: row.run for identity, row in rows.items()}
    after: dict[UUID, Run] = {}
    history = [event for event in events if keep and event.execution_id in rows]
    timing = Timing(settings.PUNCTUAL_ENQUEUE_TIMEOUT, settings.PUNCTUAL_RUN_LEASE)
    for identity, row in rows.items():
        context = Context(row.spec.retry_policy, timing, now)
        after[identity], follow_ups = fold(row.run, by_run[identity], context)
        history += follow_ups
        done.started_again += second_starts(row.run, by_run[identity])
    done.unwanted += [event.execution_id for event in events if _ended_elsewhere(event, after)]
    won = _update([(before[i], after[i]) for i in rows if after[i] != before[i]])
    append_history(history)
    done.changed = [after[identity] for identity in won]
    moved = [(rows[identity], before[identity], after[identity]) for identity in won]
    retried = {row.job_id for row, old, new in moved if new.attempt > old.attempt and waits_anew(old, new)}
    progress = Progress(list(_begun(moved)), list(_ended(moved)), retried)
    created = insert(plan_next(progress, now)) if follow else []
    done.entries = created + [
        _entry(rows[identity], after[identity])
        for identity in won
        if waits_anew(before[identity], after[identity])
    ]
    return done


def insert(new: Sequence[NewExecution]) -> list[Entry]:
    """Make rows; what exists already stays as it is. Returns the window entries of those that are new."""
    if not new:
        return []
    by_id = {item.id: item for item in new}
    new = [by_id[i] for i in sorted(by_id)]  # in one order, so that two who make the same cannot deadlock
    columns = (
        "id", "job_id", "spec_id", "owner_id", "shard", "trigger", "scheduled_for",
        "state", "reason", "message", "missed", "finished_at", "check_at", "catch_up_until", "most_active",
        "retry_of",
    )  # fmt: skip
    made = {row[0] for row in _run("insert_executions", _columns(new, columns))}
    append_history(_skip(item) for item in new if item.id in made and item.state is State.CANCELLED)
    return [
        Entry(execution_id=item.id, spec_id=item.spec_id, attempt=1, due=item.check_at)
        for item in new
        if item.id in made and item.check_at is not None
    ]


def _skip(item: NewExecution) -> Event:
    return Event(
        type=EventType.SKIPPED,
        execution_id=item.id,
        attempt=1,
        at=item.finished_at or item.scheduled_for,
        reason=item.reason,
        message=item.message,
    )


def skip_missed(skips: Sequence[Skip], now: datetime) -> set[UUID]:
    """End waiting runs that nothing has started, each for the missed fires it stands for; the ids won."""
    if not skips:
        return set()
    skips = sorted(skips, key=lambda skip: skip.execution_id)
    columns = _columns(skips, ("execution_id", "reason", "message", "missed"))
    bounds = skips[0].execution_id, skips[-1].execution_id
    won = {row[0] for row in _run("skip_missed", [now, *columns, *bounds])}
    append_history(
        Event(type=EventType.SKIPPED, execution_id=skip.execution_id, attempt=1, at=now,
              reason=skip.reason, message=skip.message)
        for skip in skips if skip.execution_id in won
    )  # fmt: skip
    return won


def hold_missed(runs: Sequence[tuple[UUID, datetime, datetime]]) -> set[UUID]:
    """Let waiting runs catch up: (id, check_at to be, last of the missed fires); the ids won."""
    if not runs:
        return set()
    runs = sorted(runs)
    columns = [list(column) for column in zip(*runs, strict=True)]
    return {row[0] for row in _run("hold_missed", [*columns, runs[0][0], runs[-1][0]])}


def request_cancel(execution_id: UUID, now: datetime, reason: str = "", message: str = "") -> Asked | None:
    """Note that a run is to stop, or not to start, and why; None where it is not there or has ended."""
    parameters: dict[str, str | datetime | UUID] = {
        "id": execution_id, "now": now, "reason": reason, "message": message, "soon": window_horizon(now),
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS["request_cancel"], parameters)
        found = cursor.fetchone()
    return None if found is None else Asked(State(found[0]), *found[1:])


def postpone(checks: Sequence[tuple[UUID, datetime, datetime]]) -> set[UUID]:
    """Move the next look at rows: (id, check_at as seen, check_at to be); the ids won."""
    if not checks:
        return set()
    columns = [list(column) for column in zip(*sorted(checks), strict=True)]
    return {row[0] for row in _run("postpone_checks", columns)}


def _lock(identities: set[UUID]) -> dict[UUID, _Locked]:
    if not identities:
        return {}
    ordered = sorted(identities)
    rows = _run("lock_runs", [ordered, ordered[0], ordered[-1]])
    bodies = {row[17]: row[-1] for row in rows}  # many runs of a batch share a spec, which is read once
    specs = {spec_id: Spec.from_json(json.loads(body)) for spec_id, body in bodies.items()}
    return {row[0]: _locked(row, specs) for row in rows}


def _locked(row: tuple[Any, ...], specs: dict[UUID, Spec]) -> _Locked:
    run = Run(row[0], State(row[1]), *row[2:16])
    job_id, spec_id, trigger, scheduled_for, catch_up_until, _body = row[16:]
    return _Locked(run, job_id, spec_id, Trigger(trigger), scheduled_for, catch_up_until, specs[spec_id])


def _update(pairs: Sequence[tuple[Run, Run]]) -> list[UUID]:
    if not pairs:
        return []
    pairs = sorted(pairs, key=lambda pair: pair[0].id)
    names = (
        "state", "attempt", "failures", "losses", "reason", "message", "worker", "exit_code",
        "queued_at", "started_at", "first_started_at", "finished_at", "check_at",
    )  # fmt: skip
    old, new = zip(*pairs, strict=True)
    ids = [run.id for run in old]
    guards = [[str(run.state) for run in old], [run.attempt for run in old]]
    return [row[0] for row in _run("update_runs", [ids, *guards, *_columns(new, names), ids[0], ids[-1]])]


def _begun(moved: Iterable[_Moved]) -> Iterator[BegunRun]:
    """Those that have been sent or started for the first time, and may still be under way."""
    for row, before, after in moved:
        begun_at = after.queued_at or after.first_started_at
        fresh = before.attempt == 1 and before.queued_at is None and before.first_started_at is None
        if fresh and begun_at is not None:
            yield BegunRun(
                id=after.id,
                job_id=row.job_id,
                trigger=row.trigger,
                scheduled_for=row.scheduled_for,
                begun_at=begun_at,
            )


def _ended(moved: Iterable[_Moved]) -> Iterator[EndedRun]:
    for row, before, after in moved:
        if before.state not in TERMINAL and after.finished_at is not None:
            yield EndedRun(
                id=after.id,
                job_id=row.job_id,
                trigger=row.trigger,
                scheduled_for=row.scheduled_for,
                state=after.state,
                started_at=after.first_started_at,
                finished_at=after.finished_at,
                begun=bool(after.queued_at or after.first_started_at or after.attempt > 1),
                held=before.check_at is not None and is_held(before.check_at),
                catch_up_until=row.catch_up_until,
            )


def began_unwanted(run: Run, event: Event) -> bool:
    """A run began although somebody wanted it ended: its tombstone may not have reached Redis (pure)."""
    return event.type is EventType.STARTED and (run.state is State.CANCELLED or run.cancel_requested)


def _ended_elsewhere(event: Event, after: dict[UUID, Run]) -> bool:
    """The end of the run was reported, and is in its row: what its worker has of it is to stop."""
    run = after.get(event.execution_id)
    if event.reason != REPORTED or run is None:
        return False
    return run.state in TERMINAL and run.attempt == event.attempt


def second_starts(run: Run, events: Iterable[Event]) -> list[Event]:
    """The JOB_STARTED that say of the row's attempt, not for the first time, that it was started afresh."""
    first = run.started_at if run.state is not State.WAITING else None
    found = []
    for event in sorted(events, key=lambda event: event.at):
        if event.type is EventType.STARTED and event.attempt == run.attempt and event.reason != REATTACHED:
            if first is not None and event.at != first:
                found.append(event)
            first = first or event.at
    return found


def waits_anew(before: Run, after: Run) -> bool:
    """A retry or a resumed run: Waiting, not queued, and not the wait that it was in before (pure)."""
    return (
        after.state is State.WAITING
        and after.queued_at is None
        and (before.state, before.attempt) != (after.state, after.attempt)
    )


def _entry(row: _Locked, run: Run) -> Entry:
    assert run.check_at is not None  # noqa: S101 -- the constraint execution_checked_iff_waiting_or_active
    return Entry(
        execution_id=run.id,
        spec_id=row.spec_id,
        attempt=run.attempt,
        due=run.check_at,
        generation=run.generation,
    )


def _columns(items: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
    return [[_plain(getattr(item, name)) for item in items] for name in names]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _run(name: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS[name], parameters)
        return cursor.fetchall() if cursor.description else []
