"""The end of work that runs elsewhere, as it is reported from there: an event for the recorder.

Nothing is written here but who said so. Once the recorder has the end in the row, it asks what may still run
of the run to stop (docs/adr/0026): its worker ends the container and frees its place, and what that says
changes nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from access.policy import User
from executions.bus.connection import BusUnavailable
from executions.bus.publishing import EventPublisher
from executions.events import REPORTED, Event, encode
from executions.listing import note_run
from executions.models import Execution
from executions.states import TERMINAL, EventType, State
from scheduler_project.kernel.errors import Conflict, InvalidFields

SKEW = timedelta(seconds=5)  # by which the clock of another host may be ahead


@dataclass(frozen=True, slots=True)
class Report:
    """``completed_at``: None is now. ``attempt``: None is the one that the row has."""

    state: State
    completed_at: datetime | None = None
    failure_reason: str = ""
    attempt: int | None = None


def report_end(execution: Execution, report: Report, now: datetime, by: User | None = None) -> None:
    """Publish it; it is safe with the broker when this returns. The same again changes nothing.

    ``by``: the person who says so, which goes on record; None: the run itself.

    Conflict: the run, or that attempt, has ended, or nobody has begun it. InvalidFields: an impossible time.
    BusUnavailable: try again; it may have arrived.
    """
    _check_goes_on(execution, report.attempt)
    attempt = report.attempt or execution.attempt
    started_at = execution.started_at if attempt == execution.attempt else None
    failed = report.state is State.COMPLETED_ABNORMALLY
    event = Event(
        type=EventType.FAILED if failed else EventType.COMPLETED,
        execution_id=execution.id,
        attempt=attempt,
        at=_completed_at(report.completed_at, started_at, now),
        reason=REPORTED,
        message=report.failure_reason,
        started_at=started_at,
        retryable=False,
    )
    with transaction.atomic():
        if by is not None:
            said = {"status": report.state, "failureReason": report.failure_reason}
            note_run(execution.id, by, "reported", {**said, "attempt": attempt})
        _published.send(encode([event]))


def _check_goes_on(execution: Execution, attempt: int | None) -> None:
    if execution.state in TERMINAL:
        raise Conflict(f"The run has ended already: it is {execution.state}.")
    if attempt is not None:
        if attempt < execution.attempt:
            raise Conflict(f"Attempt {attempt} has ended already: the run is at attempt {execution.attempt}.")
    elif execution.state != State.ACTIVE:
        raise Conflict(f"The run has not begun: it is {execution.state}.")


def _completed_at(given: datetime | None, started_at: datetime | None, now: datetime) -> datetime:
    if given is None:
        return now
    if given > now + SKEW:
        raise InvalidFields({"completedAt": [f"{given.isoformat()} is in the future."]})
    if started_at is not None and given < started_at:
        text = f"{given.isoformat()} is before the start of this attempt, {started_at.isoformat()}."
        raise InvalidFields({"completedAt": [text]})
    return min(given, now)


class _Publisher:
    """One connection for all threads of this process, made when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events = EventPublisher()

    def send(self, body: bytes) -> None:
        """A connection that has died while it was idle is made anew, once."""
        with self._lock:
            try:
                self._events.publish(body)
            except BusUnavailable:
                self._events.publish(body)


_published = _Publisher()
