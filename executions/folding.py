"""What an event makes of an execution's row (pure).

The recorder locks the rows that a batch of events speaks of, folds the events into them
here, and writes back what changed. Events may come twice or out of order; the rules:

1. An event of an earlier attempt than the row's changes nothing. The attempt is the fence.
2. A move that ``states.MOVES`` does not allow from the row's state changes nothing.
3. An outcome carries the times of what came before it, and a late JOB_STARTED or
   JOB_QUEUED cannot reach a row past it: any order gives the same row.
4. JOB_FAILED with retries left, as its policy has it, makes the row Waiting again with the next attempt;
   JOB_LOST does the same from a budget of its own, since losing a worker is not the job's failure.
   A run that somebody has asked to stop is not tried again: its tombstone would let no worker start it.
   Where it was lost on the way and nothing of it runs, it has stopped as they wanted: it is Cancelled.
5. A JOB_QUEUED of an earlier generation changes nothing: what it speaks of will not start. One with a
   reason was delivered, and waits for what the reason says.
6. What somebody has asked to stop may have begun although its row reads Waiting (executions/services.py):
   it keeps the reason that they gave, and the time at which the sweep looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from executions.entries import GENERATIONS
from executions.events import MOST_MESSAGE, Event
from executions.retry_policies import RetryPolicy
from executions.states import TERMINAL, EventType, State, move
from scheduler_project.kernel.texts import shortened

LOST_LIMIT = 3
WAITS_LOOKED_AT = 3
"""After so many leases it is looked whether what waits in a line still does: Redis may have lost it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When the scheduler looks at a row again after an event."""

    enqueue_timeout: timedelta
    lease_check: timedelta


@dataclass(frozen=True, slots=True)
class Run:
    """The part of an execution's row that events change."""

    id: UUID
    state: State
    attempt: int = 1
    failures: int = 0
    losses: int = 0
    reason: str = ""
    message: str = ""
    worker: str = ""
    exit_code: int | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    first_started_at: datetime | None = None
    finished_at: datetime | None = None
    check_at: datetime | None = None
    cancel_requested: bool = False
    generation: int = 0

    @property
    def stopped_for(self) -> str:
        """Why somebody asked it to stop, where that was said."""
        return self.reason if self.cancel_requested and self.state not in TERMINAL else ""


@dataclass(frozen=True, slots=True)
class Context:
    policy: RetryPolicy
    timing: Timing
    now: datetime


def fold(run: Run, events: Iterable[Event], context: Context) -> tuple[Run, list[Event]]:
    """The row after ``events``, and the further events that follow from them (JOB_RETRYING)."""
    follow_ups: list[Event] = []
    for event in events:
        run, more = _apply(run, event, context)
        follow_ups += more
    return run, follow_ups


def _apply(run: Run, event: Event, context: Context) -> tuple[Run, list[Event]]:
    target = move(run.state, event.type)
    if target is None or event.attempt != run.attempt:
        return run, []
    if event.type in {EventType.FAILED, EventType.LOST}:
        return _fail(run, event, context)
    if event.type is EventType.QUEUED:
        return _queue(run, event, context), []
    if event.type is EventType.STARTED:
        return _start(run, event, context), []
    if target in TERMINAL:
        return _finish(run, event, target), []
    check_at = (event.due_at or context.now) if event.type is EventType.RESUMED else None
    return replace(
        run, state=target, reason=event.reason, message=event.message, check_at=check_at, queued_at=None
    ), []


def _queue(run: Run, event: Event, context: Context) -> Run:
    if event.generation != run.generation % GENERATIONS:
        return run
    if run.cancel_requested:
        return replace(run, queued_at=_earliest(run.queued_at, event.at))
    if event.reason:
        soon = min(context.timing.enqueue_timeout, WAITS_LOOKED_AT * context.timing.lease_check)
        queued_at = _earliest(run.queued_at, event.at)
        return replace(
            run, queued_at=queued_at, reason=event.reason, message=event.message, check_at=context.now + soon
        )
    if run.queued_at is not None:
        return replace(run, queued_at=_earliest(run.queued_at, event.at))
    return replace(run, queued_at=event.at, check_at=context.now + context.timing.enqueue_timeout)


def _start(run: Run, event: Event, context: Context) -> Run:
    begun = event.started_at or event.at
    return replace(
        run,
        state=State.ACTIVE,
        reason=run.stopped_for,
        message=run.message if run.stopped_for else "",
        worker=event.worker,
        exit_code=None,
        queued_at=_earliest(run.queued_at, event.queued_at),
        started_at=_earliest(run.started_at if run.state is State.ACTIVE else None, begun),
        first_started_at=_earliest(run.first_started_at, begun),
        check_at=context.now + context.timing.lease_check,
    )


def _finish(run: Run, event: Event, state: State) -> Run:
    given = run.stopped_for if state is State.CANCELLED else ""
    return replace(
        run,
        state=state,
        reason=given or event.reason,
        message=run.message if given else event.message,
        worker=event.worker or run.worker,
        exit_code=event.exit_code,
        queued_at=_earliest(run.queued_at, event.queued_at),
        started_at=_earliest(run.started_at if run.state is State.ACTIVE else None, event.started_at)
        or run.started_at,
        first_started_at=_earliest(run.first_started_at, event.started_at),
        finished_at=event.at,
        check_at=None,
    )


def _earliest(*instants: datetime | None) -> datetime | None:
    """An attempt may be sent or taken up more than once: what counts is the first time."""
    return min((instant for instant in instants if instant is not None), default=None)


def _fail(run: Run, event: Event, context: Context) -> tuple[Run, list[Event]]:
    """Counts the failure or loss and tries again while there is budget; otherwise it is the end."""
    lost = event.type is EventType.LOST
    failures, losses = run.failures + (not lost), run.losses + lost
    budget = losses <= LOST_LIMIT if lost else event.retryable and failures <= context.policy.retries
    again = budget and not run.cancel_requested
    counted = replace(run, failures=failures, losses=losses)
    if lost and run.cancel_requested and event.gone:
        return _finish(counted, event, State.CANCELLED), [replace(event, type=EventType.CANCELLED)]
    if not again:
        return _finish(counted, event, State.COMPLETED_ABNORMALLY), []
    ended = _finish(counted, event, State.WAITING)
    due = context.now if lost else _retry_at(run, failures, event, context)
    if not lost and (why := _refusal(ended, event, due, context.policy)):
        said = shortened(f"{event.message}; not tried again: {why}".lstrip("; "), MOST_MESSAGE)
        return _finish(counted, replace(event, message=said), State.COMPLETED_ABNORMALLY), []
    waiting = replace(ended, attempt=run.attempt + 1, queued_at=None, finished_at=None, check_at=due)
    return waiting, [_retrying(event, waiting)]


def _retry_at(run: Run, failures: int, event: Event, context: Context) -> datetime:
    """The pause counts from the failure, not from its recording; a clock that is ahead adds nothing."""
    return max(context.now, min(event.at, context.now) + context.policy.pause(failures, run.id))


def _refusal(ended: Run, event: Event, due: datetime, policy: RetryPolicy) -> str:
    """Why the policy does not let an attempt follow on this failure, though there are retries left."""
    begun_at = ended.first_started_at or event.at
    return policy.refusal(event.reason, event.exit_code) or policy.too_late(due - begun_at)


def _retrying(event: Event, waiting: Run) -> Event:
    return Event(
        type=EventType.RETRYING,
        execution_id=event.execution_id,
        attempt=waiting.attempt,
        at=event.at,
        reason=event.reason,
        message=f"attempt {waiting.attempt} is due at {waiting.check_at:%Y-%m-%dT%H:%M:%S.%fZ}",
    )
