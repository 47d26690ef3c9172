"""What can be done with executions. REST, the admin and the commands are thin edges over these functions.

A cancel of a run that waits is decided where its claim is, since its row does not know yet what a worker has
just begun: the wish is noted in the row; a tombstone is set, in one step with a look at the claim; and where
nobody has begun it, the row is ended. Where somebody has, it is asked to stop like one that runs, and ends as
its worker says. Whoever dies in between leaves a row with a wish: the sweep carries it out (beat/sweeper.py).
docs/adr/0021 says why so.
"""

from __future__ import annotations

import logging
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction

from access.levels import Level
from access.policy import User
from executions.claims import forbid_start
from executions.events import Event
from executions.listing import note_run, require_run
from executions.models import Execution
from executions.scheduling import forbid, push_due_soon
from executions.states import EventType, State
from executions.store import StoreUnavailable, default_store
from executions.transitions import Asked, record, request_cancel
from scheduler_project.kernel.errors import Conflict, NotFound

logger = logging.getLogger(__name__)

USER = "user"  # the reason of a run that somebody cancelled


class Cancelling(StrEnum):
    CANCELLED = "cancelled"  # it had not started, and will not
    REQUESTED = "requested"  # it has begun, or may have, and its worker has been asked to stop it


def cancel_execution(execution_id: UUID, user: User, now: datetime, reason: str = USER) -> Cancelling:
    """End a run that nobody has begun at once, or ask the worker of one that has begun to stop it.

    Forbidden; NotFound; Conflict where it has ended already. Where Redis is away, what may be on its way to
    a worker is asked to stop: nothing begins meanwhile, and the sweep ends it when Redis answers.
    """
    require_run(user, Level.OPERATE, execution_id)
    message = f"cancelled by {user.get_username()}"
    with transaction.atomic():
        asked = request_cancel(execution_id, now, *(() if reason == USER else (reason, message)))
        if asked is not None and reason == USER:
            note_run(execution_id, user, "cancelled")
    return _cancel(execution_id, asked, now, reason, message)


def _cancel(execution_id: UUID, asked: Asked | None, now: datetime, reason: str, message: str) -> Cancelling:
    if asked is None:
        raise Conflict(f"The run has ended already: it is {_found(execution_id).state}.")
    if asked.state is State.ACTIVE:
        forbid([execution_id])
        return Cancelling.REQUESTED
    if _may_have_begun(execution_id, asked):
        return Cancelling.REQUESTED
    if _end_unstarted(execution_id, asked.attempt, now, reason, message):
        return Cancelling.CANCELLED
    again = request_cancel(execution_id, now, *(() if reason == USER else (reason, message)))
    return _cancel(execution_id, again, now, reason, message)


def end_cancelled(execution_id: UUID, attempt: int, now: datetime) -> bool:
    """Carry out the cancel of a run that nobody has begun; whether this call ended it.

    StoreUnavailable where Redis is away: whether it has begun cannot be known then.
    """
    if not forbid_start(default_store(), execution_id, attempt, site_counts=False):
        return False
    found = _found(execution_id)
    message = found.message or "cancelled before it was started"
    return _end_unstarted(execution_id, attempt, now, found.reason or USER, message)


def _found(execution_id: UUID) -> Execution:
    execution = Execution.objects.filter(id=execution_id).first()
    if execution is None:
        raise NotFound(f"There is no execution {execution_id}.")
    return execution


def _may_have_begun(execution_id: UUID, asked: Asked) -> bool:
    """Leave its tombstone, and see."""
    try:
        return not forbid_start(default_store(), execution_id, asked.attempt)
    except StoreUnavailable as error:
        logger.warning("tombstones_late", extra={"runs": 1, "error": error.message})
        return asked.underway


def _end_unstarted(execution_id: UUID, attempt: int, now: datetime, reason: str, message: str) -> bool:
    """Whether this call ended it. The next occurrence is made in the same transaction."""
    event = Event(
        type=EventType.CANCELLED,
        execution_id=execution_id,
        attempt=attempt,
        at=now,
        reason=reason,
        message=message,
    )
    with transaction.atomic():
        row = Execution.objects.select_for_update().filter(id=execution_id).exclude(state=State.ACTIVE)
        if not list(row.values_list("id")):
            return False
        done = record([event], now, keep=True)
    push_due_soon(done.entries, now)
    forbid([execution_id])
    return bool(done.changed)
