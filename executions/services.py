"""What can be done with executions. REST, the admin and the commands are thin edges over these functions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction

from executions.events import Event
from executions.models import Execution
from executions.scheduling import forbid, push_due_soon
from executions.states import TERMINAL, EventType, State
from executions.transitions import record, request_cancel
from scheduler_project.kernel.errors import Conflict, NotFound

USER = "user"  # the reason of a run that somebody cancelled


class Cancelling(StrEnum):
    CANCELLED = "cancelled"  # it had not started, and will not
    REQUESTED = "requested"  # it runs, and its worker has been asked to stop it


def cancel_execution(execution_id: UUID, by: str, now: datetime, reason: str = USER) -> Cancelling:
    """Cancel a waiting run at once, or ask the worker of a running one to stop it.

    NotFound; Conflict where it has ended already.
    """
    found = _found(execution_id)
    if found.state != State.ACTIVE and _cancel_waiting(found, by, now, reason):
        forbid([execution_id])
        return Cancelling.CANCELLED
    if request_cancel(execution_id, now, *(() if reason == USER else (reason, f"cancelled by {by}"))):
        forbid([execution_id])
        return Cancelling.REQUESTED
    state = _found(execution_id).state
    if state in TERMINAL:
        raise Conflict(f"The run has ended already: it is {state}.")
    return cancel_execution(execution_id, by, now, reason)


def _found(execution_id: UUID) -> Execution:
    execution = Execution.objects.filter(id=execution_id).first()
    if execution is None:
        raise NotFound(f"There is no execution {execution_id}.")
    return execution


def _cancel_waiting(found: Execution, by: str, now: datetime, reason: str) -> bool:
    """Whether this call ended it. The next occurrence is made in the same transaction."""
    event = Event(
        type=EventType.CANCELLED,
        execution_id=found.id,
        attempt=found.attempt,
        at=now,
        reason=reason,
        message=f"cancelled by {by}",
    )
    if found.state in TERMINAL:
        return False
    with transaction.atomic():
        done = record([event], now, keep=True)
    push_due_soon(done.entries, now)
    return bool(done.changed)
