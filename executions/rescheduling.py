"""Moving one waiting run to another time: it keeps its id, its planned time and its history.

Only this run moves: it leaves its schedule (trigger ``moved``), whose next occurrence is made in the same
transaction, by its planned time. It runs when it was told to, beside whatever else the job runs then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from access.levels import Level
from access.policy import User
from executions.entries import Entry
from executions.events import Event
from executions.history import append_history
from executions.holding import is_held
from executions.listing import note_run, require_run
from executions.models import Execution
from executions.planning import EndedRun, Progress, plan_next
from executions.redirection import (
    LiveRun,
    Redirection,
    RunBusy,
    Withdrawn,
    live_run,
    redirect,
    send_again,
    withdraw,
)
from executions.states import EventType, State
from executions.transitions import insert
from scheduler_project.kernel.durations import LONGEST, format_duration
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound

RESCHEDULED = "rescheduled"
TRIES = 5


@dataclass(frozen=True, slots=True)
class _Move:
    due: datetime
    user: User
    now: datetime

    @property
    def message(self) -> str:
        return f"moved to {self.due:%Y-%m-%dT%H:%M:%S.%fZ} by {self.user.get_username()}"


def reschedule_execution(execution_id: UUID, at: datetime, user: User, now: datetime) -> datetime:
    """Let a run that waits start at ``at``, or now where that has passed; when it is due.

    Forbidden; NotFound; Conflict where it does not wait (any more); InvalidFields for a time too far away.
    StoreUnavailable where Redis is away: whether it has begun cannot be known then.
    """
    require_run(user, Level.OPERATE, execution_id)
    if at - now > LONGEST:
        raise InvalidFields({"at": [f"It is more than {format_duration(LONGEST)} from now."]})
    move = _Move(max(at, now), user, now)
    for _ in range(TRIES):
        try:
            _reschedule(execution_id, move)
        except RunBusy:
            continue
        return move.due
    raise RunBusy


def _reschedule(execution_id: UUID, move: _Move) -> None:
    withdrawn = withdraw([_waiting(execution_id)], move.now)
    if execution_id in withdrawn.begun:
        raise Conflict("The run has begun.")
    with transaction.atomic(durable=True):
        entries = _move(_waiting(execution_id, lock=True), withdrawn, move)
        note_run(execution_id, move.user, "moved", {"dueAt": f"{move.due:%Y-%m-%dT%H:%M:%S.%fZ}"})
    send_again(withdrawn, entries, move.now)


def _waiting(execution_id: UUID, *, lock: bool = False) -> LiveRun:
    run = live_run(execution_id, lock=lock)
    if run is not None and run.waits:
        return run
    state = Execution.objects.filter(id=execution_id).values_list("state", flat=True).first()
    if state is None:
        raise NotFound(f"There is no execution {execution_id}.")
    raise Conflict(f"Only a run that waits can be moved: it is {state}.")


def _move(run: LiveRun, withdrawn: Withdrawn, move: _Move) -> list[Entry]:
    withdrawn.check(run, move.now)
    wanted = Redirection(
        spec_id=run.spec_id, check_at=move.due, reason=RESCHEDULED, message=move.message, moved_to=move.due
    )
    event = Event(
        type=EventType.RESUMED,
        execution_id=run.id,
        attempt=run.attempt,
        at=move.now,
        reason=RESCHEDULED,
        message=move.message,
    )
    append_history([event])
    entries = redirect([(run, wanted)])
    return [*entries, *insert(plan_next(Progress(moved=[_as_ended(run, move.now)]), move.now))]


def _as_ended(run: LiveRun, now: datetime) -> EndedRun:
    row = Execution.objects.get(id=run.id)
    return EndedRun(
        id=run.id,
        job_id=run.job_id,
        trigger=run.trigger,
        scheduled_for=run.scheduled_for,
        state=State.WAITING,
        started_at=row.first_started_at,
        finished_at=now,
        begun=run.queued_at is not None or run.attempt > 1,
        held=run.check_at is not None and is_held(run.check_at),
        catch_up_until=row.catch_up_until,
    )
