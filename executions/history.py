"""The history: every event once, and what is new in it counted in the same statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection

from containers.outcome import LOSSES
from executions.events import Event
from executions.queries import HISTORY
from executions.states import Trigger
from executions.tallies import BOUNDS_S, LATE_S

_COLUMNS = ("execution_id", "id", "type", "attempt", "at", "worker", "reason", "message", "exit_code")
TIMELY = [str(trigger) for trigger in (Trigger.SCHEDULE, Trigger.MANUAL, Trigger.MOVED)]
_LOSSES = [str(reason) for reason in LOSSES]


def append_history(events: Iterable[Event]) -> None:
    """Append to the history and count; an event that is there already changes nothing and counts nothing.

    One statement, however many events; in the caller's transaction.
    """
    items = sorted(events, key=lambda event: (event.execution_id, event.id))  # so that two cannot deadlock
    if not items:
        return
    parameters: dict[str, Any] = {
        **{name: [_plain(getattr(item, name)) for item in items] for name in _COLUMNS},
        "first": items[0].execution_id,
        "last": items[-1].execution_id,
        "timely": TIMELY,
        "losses": _LOSSES,
        "late_s": LATE_S,
        "bounds_s": list(BOUNDS_S),
    }
    with connection.cursor() as cursor:
        cursor.execute(HISTORY["append_events"], parameters)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str) else value
