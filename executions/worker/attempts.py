"""One attempt in a worker's hands, and how it ended (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from containers.outcome import LOSSES, Outcome, Reason
from executions.claims import Attempt
from executions.engines import Site
from executions.entries import Flag
from executions.events import MOST_MESSAGE, REATTACHED, Event
from executions.states import EventType
from executions.worker.assignments import Assignment
from scheduler_project.kernel.errors import PunctualError
from scheduler_project.kernel.texts import shortened


class Stopping(PunctualError):
    """This worker is going to end, or cannot claim anything."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended; ``retryable`` is False where another attempt cannot end otherwise.

    ``started_at``, ``finished_at``: of its container, where there was one. ``gone``: nothing of it runs.
    """

    reason: str
    message: str
    exit_code: int | None = None
    retryable: bool = True
    started_at: datetime | None = None
    finished_at: datetime | None = None
    gone: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, MOST_MESSAGE))

    @property
    def succeeded(self) -> bool:
        return self.reason == Reason.SUCCEEDED


NOT_STARTED = Ended(str(Reason.CANCELLED), "cancelled before it was started")


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that this worker holds the claim of.

    ``started_at``: when it said JOB_STARTED; ``site``: what was known of one that had begun.
    """

    given: Assignment
    started_at: datetime
    site: Site | None = None

    @property
    def attempt(self) -> Attempt:
        return self.given.key

    @property
    def begun_at(self) -> datetime | None:
        """When JOB_STARTED was first said of this attempt, if that is known."""
        if Flag.REATTACH not in self.given.flags:
            return self.started_at
        return None if self.site is None else self.site.begun_at


def ended_of(outcome: Outcome) -> Ended:
    return Ended(
        str(outcome.reason),
        outcome.message,
        outcome.exit_code,
        gone=outcome.reason is not Reason.NODE_LOST,
        started_at=None if outcome.reason is Reason.LOST else outcome.started_at,
        finished_at=outcome.finished_at,
    )


def unreached(engine: str) -> Ended:
    """Of a run whose engine is given up."""
    said = (
        f"its container was on the engine {engine}, of which no worker has been seen for longer than"
        " PUNCTUAL_ENGINE_WAIT; what may still run there is removed when one is back"
    )
    return Ended(str(Reason.LOST), said, gone=False)


def ends_its_workers(times: int) -> Ended:
    """Of a run whose workers went away one after the other."""
    said = (
        f"{times} times within minutes the worker that had it went away, and it was taken up again: it may be"
        " what ends them, so it is given up; what may still run of it is removed"
    )
    return Ended(str(Reason.LOST), said, gone=False)


def event_of(event_type: EventType, held: Held, worker: str) -> Event:
    """What ``worker`` says of an attempt that it holds, as of its start."""
    given = held.given
    return Event(
        type=event_type,
        execution_id=given.execution_id,
        attempt=given.attempt,
        at=held.started_at,
        worker=worker,
        queued_at=given.queued_at,
    )


def start_of(held: Held, worker: str) -> Event:
    """Its JOB_STARTED."""
    started = event_of(EventType.STARTED, held, worker)
    if Flag.REATTACH in held.given.flags:
        return replace(started, reason=REATTACHED, started_at=held.begun_at)
    return started


def type_of(ended: Ended) -> EventType:
    """The event that says so."""
    if ended.succeeded:
        return EventType.COMPLETED
    if ended.reason == Reason.CANCELLED:
        return EventType.CANCELLED
    return EventType.LOST if ended.reason in LOSSES else EventType.FAILED


def outcome_of(event_type: EventType, held: Held, worker: str, ended: Ended, now: datetime) -> Event:
    """What says how it ended."""
    started_at = held.begun_at or ended.started_at
    return replace(
        event_of(event_type, held, worker),
        # Its end may lie before this worker took it up, but not before its start: hosts' clocks differ.
        at=max(started_at or held.started_at, min(now, ended.finished_at or now)),
        started_at=started_at,
        gone=ended.gone,
        reason=ended.reason,
        message=ended.message,
        exit_code=ended.exit_code,
        retryable=ended.retryable,
    )


def who(given: Assignment) -> dict[str, object]:
    return {"execution": given.execution_id, "attempt": given.attempt, "job": given.spec.job_name}
