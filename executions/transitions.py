"""The only writer of ``state``: batched, guarded, idempotent.

``record`` is one unit: lock the rows that the events speak of, fold the events into them
(executions/folding.py), write back what changed where nobody else has changed it, append
the follow-up events to the history, and plan what comes next. All in the caller's
transaction; what is due soon is returned, to be pushed into the window after the commit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from executions.entries import Entry
from executions.events import REATTACHED, Event
from executions.folding import Context, Run, Timing, fold
from executions.planning import EndedRun, NewExecution, plan_next
from executions.queries import TRANSITIONS
from executions.runspecs import Spec
from executions.states import TERMINAL, EventType, State, Trigger


@dataclass(slots=True)
class Recorded:
    """What a batch did: rows changed, events of no row, runs due soon, cancelled runs that began.

    ``started_again``: a JOB_STARTED of each attempt that two workers have started (never promised not to
    happen, and to be counted).
    """

    changed: list[Run] = field(default_factory=list)
    unknown: list[Event] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    unwanted: list[UUID] = field(default_factory=list)
    started_again: list[Event] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Locked:
    run: Run
    job_id: UUID
    spec_id: UUID
    trigger: Trigger
    scheduled_for: datetime
    spec: Spec


def record(events: Sequence[Event], now: datetime, *, keep: bool = False) -> Recorded:
    """Apply ``events`` to their rows. ``keep``: also append them to the history (where no auditor will)."""
    rows = _lock({event.execution_id for event in events})
    done = Recorded(
        unknown=[event for event in events if event.execution_id not in rows],
        unwanted=[event.execution_id for event in events if _began_cancelled(event, rows)],
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
    won = _update([(before[i], after[i]) for i in rows if after[i] != before[i]])
    append_history(history)
    done.changed = [after[identity] for identity in won]
    created = insert(plan_next(_ended(rows, before, after, won), now))
    done.entries = created + [
        _entry(rows[identity], after[identity])
        for identity in won
        if _waits_anew(before[identity], after[identity])
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
        "state", "reason", "message", "missed", "finished_at", "check_at",
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


def append_history(events: Iterable[Event]) -> None:
    """Append to the history; an event that is there already changes nothing."""
    items = sorted(events, key=lambda event: (event.execution_id, event.id))  # the same
    if items:
        names = ("execution_id", "id", "type", "attempt", "at", "worker", "reason", "message", "exit_code")
        _run("append_events", _columns(items, names))


def request_cancel(execution_id: UUID, now: datetime) -> bool:
    """Note that an Active run is to stop; False where it is not Active (any more)."""
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS["request_cancel"], [now, execution_id])
        return bool(cursor.rowcount == 1)


def postpone(checks: Sequence[tuple[UUID, datetime, datetime]]) -> None:
    """Move the next look at rows: (id, check_at as seen, check_at to be)."""
    if checks:
        _run("postpone_checks", [list(column) for column in zip(*sorted(checks), strict=True)])


def _lock(identities: set[UUID]) -> dict[UUID, _Locked]:
    if not identities:
        return {}
    ordered = sorted(identities)
    rows = _run("lock_runs", [ordered, ordered[0], ordered[-1]])
    bodies = {row[15]: row[-1] for row in rows}  # many runs of a batch share a spec, which is read once
    specs = {spec_id: Spec.from_json(json.loads(body)) for spec_id, body in bodies.items()}
    return {row[0]: _locked(row, specs) for row in rows}


def _locked(row: tuple[Any, ...], specs: dict[UUID, Spec]) -> _Locked:
    run = Run(row[0], State(row[1]), *row[2:14])
    job_id, spec_id, trigger, scheduled_for, _body = row[14:]
    return _Locked(run, job_id, spec_id, Trigger(trigger), scheduled_for, specs[spec_id])


def _update(pairs: Sequence[tuple[Run, Run]]) -> list[UUID]:
    if not pairs:
        return []
    pairs = sorted(pairs, key=lambda pair: pair[0].id)
    names = (
        "state", "attempt", "failures", "losses", "reason", "message", "worker", "exit_code",
        "queued_at", "started_at", "finished_at", "check_at",
    )  # fmt: skip
    old, new = zip(*pairs, strict=True)
    ids = [run.id for run in old]
    guards = [[str(run.state) for run in old], [run.attempt for run in old]]
    return [row[0] for row in _run("update_runs", [ids, *guards, *_columns(new, names), ids[0], ids[-1]])]


def _ended(
    rows: dict[UUID, _Locked], before: dict[UUID, Run], after: dict[UUID, Run], won: Iterable[UUID]
) -> list[EndedRun]:
    return [
        EndedRun(
            id=identity,
            job_id=rows[identity].job_id,
            trigger=rows[identity].trigger,
            scheduled_for=rows[identity].scheduled_for,
            state=after[identity].state,
            started_at=after[identity].started_at,
            finished_at=finished_at,
        )
        for identity in won
        if before[identity].state not in TERMINAL and (finished_at := after[identity].finished_at) is not None
    ]


def _began_cancelled(event: Event, rows: dict[UUID, _Locked]) -> bool:
    """A run began although it was cancelled: its tombstone did not reach Redis in time."""
    row = rows.get(event.execution_id)
    return event.type is EventType.STARTED and row is not None and row.run.state is State.CANCELLED


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


def _waits_anew(before: Run, after: Run) -> bool:
    """A retry or a resumed run: Waiting, not queued, and not the wait that it was in before."""
    return (
        after.state is State.WAITING
        and after.queued_at is None
        and (before.state, before.attempt) != (after.state, after.attempt)
    )


def _entry(row: _Locked, run: Run) -> Entry:
    assert run.check_at is not None  # noqa: S101 -- the constraint execution_checked_iff_waiting_or_active
    return Entry(execution_id=run.id, spec_id=row.spec_id, attempt=run.attempt, due=run.check_at)


def _columns(items: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
    return [[_plain(getattr(item, name)) for item in items] for name in names]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _run(name: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS[name], parameters)
        return cursor.fetchall() if cursor.description else []
