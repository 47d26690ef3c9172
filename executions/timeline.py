"""How long a run was in each state, from its history (pure).

    made ──Waiting──▶ started ──Active──▶ failed ──Waiting──▶ started ──Active──▶ completed

The events are folded by the same table as the row (``states.MOVES``), attempt by attempt. A
failure that another attempt followed is a move back to Waiting: its JOB_RETRYING says the
same, and may not have been written yet. Where the history lags behind the row, the row's own
times close the gap; where hosts' clocks differ, a span is never shorter than nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from executions.states import TERMINAL, EventType, State, move

_RANK = {
    kind: rank
    for rank, kind in enumerate(
        [
            EventType.RETRYING,
            EventType.QUEUED,
            EventType.PAUSED,
            EventType.RESUMED,
            EventType.STARTED,
            EventType.SKIPPED,
            EventType.LOST,
            EventType.FAILED,
            EventType.CANCELLED,
            EventType.COMPLETED,
        ]
    )
}

ENDS = frozenset({EventType.LOST, EventType.FAILED, EventType.CANCELLED, EventType.COMPLETED})


class Statement(Protocol):
    """An event, as the history or the exchange has it."""

    @property
    def type(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def at(self) -> datetime: ...


E = TypeVar("E", bound=Statement)


@dataclass(frozen=True, slots=True)
class Row:
    """What the execution's row says of itself."""

    state: State
    attempt: int
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A time in one state; ``until`` is None in the state that it is in now."""

    state: State
    attempt: int
    since: datetime
    until: datetime | None = None

    def length(self, now: datetime) -> timedelta:
        """How long it lasted, or has lasted so far."""
        return max(timedelta(0), (self.until or now) - self.since)


def in_order(events: Iterable[E]) -> list[E]:
    """The events as they followed on each other: by attempt, then time; at one time by what causes what.

    An attempt's end is its last: who takes up a run that has ended says so after that.
    """
    return sorted(events, key=_place)


def _place(event: Statement) -> tuple[int, bool, datetime, int]:
    kind = EventType(event.type)
    return event.attempt, kind in ENDS, event.at, _RANK[kind]


def spans(row: Row, events: Iterable[Statement]) -> list[Span]:
    """The states that the run has been in, in order; the last one is open."""
    found = [Span(State.WAITING, 1, row.created_at)]
    for event in in_order(events):
        current = found[-1]
        target = None if came_too_late(row, event) else _target(current, event, row.attempt)
        if target is not None:
            _enter(found, *target, event.at)
    return _catch_up(found, row)


def came_too_late(row: Row, event: Statement) -> bool:
    """Whether it is an end that the run's row does not have, since another one had been recorded before.

    Such as a worker's word that it stopped what was left of a run whose end had been reported.
    """
    if event.type not in ENDS or row.state not in TERMINAL or event.attempt != row.attempt:
        return False
    return move(State.ACTIVE, EventType(event.type)) is not row.state


def _target(current: Span, event: Statement, latest: int) -> tuple[State, int] | None:
    """The state and the attempt that ``event`` leads to, or None where it changes nothing."""
    kind = EventType(event.type)
    target = move(current.state, kind)
    if target is None or event.attempt < current.attempt:
        return None
    if kind in {EventType.FAILED, EventType.LOST} and event.attempt < latest:
        return State.WAITING, event.attempt + 1
    return target, event.attempt


def _enter(found: list[Span], state: State, attempt: int, at: datetime) -> None:
    current = found[-1]
    if state is current.state:
        found[-1] = replace(current, attempt=attempt)
        return
    at = max(at, current.since)
    found[-1] = replace(current, until=at)
    found.append(Span(state, attempt, at))


def _catch_up(found: list[Span], row: Row) -> list[Span]:
    """Add what the row knows and the history does not yet."""
    if found[-1].state in TERMINAL or found[-1].state is row.state:
        return found
    if row.started_at is not None and found[-1].state is State.WAITING:
        _enter(found, State.ACTIVE, row.attempt, row.started_at)
    if row.finished_at is not None:
        _enter(found, row.state, row.attempt, row.finished_at)
    return found


def seconds_in_state(found: Sequence[Span], now: datetime) -> dict[str, float]:
    """Seconds in each state that the run has been in and left, or is in; an end lasts no time."""
    total: dict[str, float] = defaultdict(float)
    for span in found:
        if span.state not in TERMINAL:
            total[str(span.state)] += span.length(now).total_seconds()
    return dict(total)
