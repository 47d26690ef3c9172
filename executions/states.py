"""The six states and every allowed move between them (pure).

    Waiting ──JOB_STARTED──▶ Active ──JOB_COMPLETED──▶ Completed Normally
      ▲  │                     │ ├────JOB_FAILED─────▶ Completed Abnormally
      │  │◀────JOB_RETRYING────┘ └──JOB_CANCELLED────▶ Cancelled
      │  └─JOB_PAUSED─▶ Paused
      └────JOB_RESUMED────┘

``MOVES`` is the whole rule; docs/states.md draws it and a test compares the two. Events may
come out of order, so an outcome also moves a row that still reads Waiting. The terminal
states absorb: no event leads out of them.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    WAITING = "Waiting"
    ACTIVE = "Active"
    COMPLETED_NORMALLY = "Completed Normally"
    COMPLETED_ABNORMALLY = "Completed Abnormally"
    PAUSED = "Paused"
    CANCELLED = "Cancelled"


TERMINAL = frozenset({State.COMPLETED_NORMALLY, State.COMPLETED_ABNORMALLY, State.CANCELLED})


class EventType(StrEnum):
    QUEUED = "JOB_QUEUED"
    STARTED = "JOB_STARTED"
    COMPLETED = "JOB_COMPLETED"
    FAILED = "JOB_FAILED"
    RETRYING = "JOB_RETRYING"
    CANCELLED = "JOB_CANCELLED"
    PAUSED = "JOB_PAUSED"
    RESUMED = "JOB_RESUMED"
    SKIPPED = "JOB_SKIPPED"
    LOST = "JOB_LOST"


OUTCOMES = frozenset({EventType.COMPLETED, EventType.FAILED, EventType.CANCELLED, EventType.LOST})
"""How an attempt ends."""


class Trigger(StrEnum):
    """What asked for a run: its schedule, at its time or later (catchup), or somebody.

    Moved: somebody gave it another time, so that it has left its schedule, or its backfill.
    """

    SCHEDULE = "schedule"
    CATCH_UP = "catchup"
    MANUAL = "manual"
    BACKFILL = "backfill"
    MOVED = "moved"


HOLDABLE = frozenset({Trigger.CATCH_UP, Trigger.BACKFILL})
"""What waits for leave to start, and starts at a limited rate."""


_BEFORE_THE_END = (State.WAITING, State.ACTIVE, State.PAUSED)

MOVES: dict[EventType, dict[State, State]] = {
    EventType.QUEUED: {State.WAITING: State.WAITING},
    EventType.STARTED: dict.fromkeys(_BEFORE_THE_END, State.ACTIVE),
    EventType.COMPLETED: dict.fromkeys(_BEFORE_THE_END, State.COMPLETED_NORMALLY),
    EventType.FAILED: dict.fromkeys(_BEFORE_THE_END, State.COMPLETED_ABNORMALLY),
    EventType.LOST: dict.fromkeys(_BEFORE_THE_END, State.COMPLETED_ABNORMALLY),
    EventType.RETRYING: dict.fromkeys(_BEFORE_THE_END, State.WAITING),
    EventType.CANCELLED: dict.fromkeys(_BEFORE_THE_END, State.CANCELLED),
    EventType.PAUSED: {State.WAITING: State.PAUSED},
    EventType.RESUMED: {State.PAUSED: State.WAITING},
    EventType.SKIPPED: {State.WAITING: State.CANCELLED},
}


def move(state: State, event: EventType) -> State | None:
    """The state that ``event`` leads to from ``state``, or None where it is not allowed."""
    return MOVES[event].get(state)
