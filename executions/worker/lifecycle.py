"""One run worker: from delivery to outcome. Celery's signals (signals.py) call in here.

    delivery ─ begin ─┬─ won ────▶ JOB_STARTED confirmed ─▶ acknowledged ─▶ execute ─▶ report
                      ├─ held ───▶ looked at again when the holder's lease has ended
                      └─ done, stale, stopped ─▶ acknowledged, nothing else

What may fail, and then: the worker dies before it acknowledges: the broker delivers again;
after that: its lease ends, the sweep sends the run with REATTACH, and whoever gets it finds
the container or, where there is none, reports JOB_LOST. The broker is away: events are held,
and the container is forgotten only when its outcome is safe.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings

from containers.outcome import Outcome, Reason
from containers.runtime import Runtime, RuntimeUnavailable
from containers.spec import ContainerSpec, container_name
from containers.supervise import Detached, Stop, run_to_end
from executions.claims import Attempt, Claimed, Claims, Renewal
from executions.entries import Entry, Flag
from executions.events import MOST_MESSAGE, REATTACHED, Event, encode
from executions.logs import log_store
from executions.states import EventType
from executions.store import Store, StoreUnavailable
from executions.window import Window
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults, container_spec
from executions.worker.leases import LeaseKeeper
from executions.worker.outbox import EventsHeld, Outbox
from executions.worker.rendering import Rendered, TemplateRefused, render
from executions.worker.slots import Slots
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import Clock, monotonic
from scheduler_project.kernel.errors import InvalidValue, PunctualError
from scheduler_project.kernel.texts import shortened

logger = logging.getLogger(__name__)

TEMPLATE_REFUSED = "template_error"
CLAIM_WITHIN_S = 5.0
UNRENDERED = Rendered("", {}, {})
_T = TypeVar("_T")


class Stopping(PunctualError):
    """This worker is going to end, or cannot claim anything."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended; ``retryable`` is False where another attempt cannot end otherwise."""

    reason: str
    message: str
    exit_code: int | None = None
    retryable: bool = True
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, MOST_MESSAGE))

    @property
    def succeeded(self) -> bool:
        return self.reason == Reason.SUCCEEDED


NOT_STARTED = Ended(str(Reason.CANCELLED), "cancelled before it was started")


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that this worker holds the claim of. ``started_at``: when it said JOB_STARTED."""

    given: Assignment
    started_at: datetime

    @property
    def attempt(self) -> Attempt:
        return self.given.key


class RunWorker:
    """What one worker process holds: its claims, its runtime, its outbox, its slots."""

    def __init__(
        self, name: str, slots: Slots, runtime: Runtime, store: Store, *, defaults: RunDefaults, clock: Clock
    ) -> None:
        self.name = name
        self.slots = slots
        self.stopping = threading.Event()
        self.outbox = Outbox(self.stopping)
        self._runtime = runtime
        self._window = Window(store)
        self._claims = Claims(store, f"{name}/{uuid.uuid4().hex}", settings.PUNCTUAL_RUN_LEASE)
        self._leases = LeaseKeeper(self._claims)
        self._logs = log_store()
        self._defaults = defaults
        self._clock = clock

    def begin(self, given: Assignment) -> Held | None:
        """Claim an attempt and announce its start; None where it is not ours to run.

        Stopping: it could not be claimed in time, or before this worker ends; it is to be left to others.
        """
        claimed = self._claim(given)
        if claimed is Claimed.WON:
            return self._announce(Held(given, self._clock.now()))
        logger.info("run_not_claimed", extra={**_who(given), "claim": str(claimed)})
        if claimed is Claimed.HELD and Flag.RECHECK not in given.flags:
            # The holder may have died just now, before it acknowledged: try once more after its lease.
            later = settings.PUNCTUAL_RUN_LEASE + timedelta(seconds=1)
            self._patiently(given, lambda: self._push(given, given.flags | Flag.RECHECK, later))
        return None

    def _announce(self, held: Held) -> Held:
        started = self._event(EventType.STARTED, held)
        if Flag.REATTACH in held.given.flags:
            started = replace(started, reason=REATTACHED)
        try:
            self.outbox.send(started)
        except EventsHeld as error:
            self._let_go(held, lambda: self._claims.give_up(*held.attempt))
            raise Stopping from error
        logger.info("run_started", extra=_who(held.given))
        return held

    def _claim(self, given: Assignment) -> Claimed:
        """A second delivery of what this worker runs already is as held as by any other."""
        if not self._leases.reserve(given.key):
            return Claimed.HELD
        claimed, reattach = Claimed.HELD, Flag.REATTACH in given.flags
        try:
            claimed = self._patiently(
                given,
                lambda: self._claims.claim(*given.key, generation=given.generation, reattach=reattach),
            )
        finally:
            if claimed is Claimed.WON:
                self._leases.hold(given.key)
            else:
                self._leases.drop(given.key)
        return claimed

    def execute(self, held: Held) -> Ended:
        """Run the attempt's container to its end. Detached: it goes on, watched by nobody now.

        What has begun already is taken up without rendering: its words and variables are there.
        """
        given = held.given
        if Flag.REATTACH in given.flags:
            return self._take_up(held)
        if self._wanted_stop(held) is Stop.CANCEL:
            return NOT_STARTED
        try:
            rendered = render(given.spec, given.execution_id, given.scheduled_for, given.attempt)
            container = container_spec(given, rendered, self._defaults)
        except (TemplateRefused, InvalidValue) as error:
            return Ended(TEMPLATE_REFUSED, error.message, retryable=False)
        match self._leases.current(held.attempt):
            case Renewal.STOPPED:
                return NOT_STARTED
            case Renewal.FENCED:
                raise Detached
        return _ended(self._run(held, container))

    def _take_up(self, held: Held) -> Ended:
        """Where there is no container any more it is lost; or cancelled, if that was asked for."""
        ended = _ended(self._run(held, container_spec(held.given, UNRENDERED, self._defaults)))
        if ended.reason == Reason.LOST and self._leases.renewed(held.attempt) is Renewal.STOPPED:
            return replace(ended, reason=str(Reason.CANCELLED), message=f"cancelled; {ended.message}")
        return ended

    def _run(self, held: Held, container: ContainerSpec) -> Outcome:
        """Waits for an engine that does not answer as long as a start may take."""
        given = held.given
        give_up = monotonic() + container.start_timeout_s
        for delay in exponential(cap=5.0):
            try:
                return run_to_end(
                    self._runtime,
                    container,
                    self._logs.writer(given.execution_id, given.attempt),
                    lambda: self._wanted_stop(held),
                    attach_only=Flag.REATTACH in given.flags,
                )
            except RuntimeUnavailable as error:
                wanted = self._wanted_stop(held)
                if wanted is Stop.DETACH:
                    raise Detached from error
                if wanted is Stop.CANCEL or monotonic() >= give_up:
                    raise
                logger.warning("runtime_awaited", extra={**_who(given), "error": error.message})
                self.stopping.wait(delay)
        raise Detached

    def report(self, held: Held, event_type: EventType, ended: Ended) -> None:
        """Publish the outcome; when it is safe, end the claim and forget the container.

        A worker that is going to end while the broker is away leaves the outcome with the claim,
        where the sweep finds it, and the container to whoever may have to look at it again.
        """
        event = self._outcome(held, event_type, ended)
        published = self._published(event)
        self._let_go(held, lambda: self._claims.finish(*held.attempt, encode([event])))
        if published:
            self._forget(held.given)
        else:
            logger.warning("outcome_left_to_sweep", extra=_who(held.given))
        logger.info(
            "run_ended", extra={**_who(held.given), "reason": ended.reason, "exit_code": ended.exit_code}
        )

    def _published(self, event: Event) -> bool:
        try:
            self.outbox.send(event)
        except EventsHeld:
            return False
        return True

    def hand_over(self, held: Held) -> None:
        """Give a run that goes on to whoever attaches next. A claim that is no longer ours stays as it is."""
        if not self.stopping.is_set():
            self._leases.drop(held.attempt)
            return
        self._let_go(held, lambda: self._claims.give_up(*held.attempt))
        try:
            self._push(held.given, Flag.REATTACH, timedelta(0))
        except StoreUnavailable:
            logger.warning("handed_over_by_lease", extra=_who(held.given))  # the sweep finds it

    def close(self) -> None:
        """Shutdown order: intake has ended, runs are handed over, now the events, then the leases."""
        if not self.outbox.close(timeout_s=2.0):
            logger.warning("events_left", extra={"worker": self.name})
        self._leases.close()
        self._runtime.close()

    def _patiently(self, given: Assignment, call: Callable[[], _T]) -> _T:
        """``call`` Redis until it answers; Stopping where that takes long: another worker may reach it."""
        give_up = monotonic() + CLAIM_WITHIN_S
        for delay in exponential(cap=2.0):
            if self.stopping.is_set() or monotonic() > give_up:
                raise Stopping
            try:
                return call()
            except StoreUnavailable as error:
                logger.warning("claim_waits", extra={**_who(given), "error": error.message})
                self.stopping.wait(delay)
        raise Stopping

    def _push(self, given: Assignment, flags: Flag, delay: timedelta) -> None:
        entry = Entry(
            execution_id=given.execution_id,
            spec_id=given.spec_id,
            attempt=given.attempt,
            due=self._clock.now() + delay,
            generation=given.generation,
            flags=flags,
        )
        self._window.add([entry], {given.spec_id: given.spec.canonical})

    def _wanted_stop(self, held: Held) -> Stop | None:
        answer = self._leases.answer(held.attempt)
        if answer is Renewal.HELD:
            return Stop.DETACH if self.stopping.is_set() else None
        return Stop.CANCEL if answer is Renewal.STOPPED else Stop.DETACH

    def _let_go(self, held: Held, release: Callable[[], None]) -> None:
        if not self._leases.end(held.attempt, release):
            logger.warning("claim_ends_later", extra=_who(held.given))

    def _forget(self, given: Assignment) -> None:
        try:
            self._runtime.forget(container_name(given.execution_id, given.attempt))
        except (PunctualError, OSError) as error:
            logger.warning("container_left", extra={**_who(given), "error": str(error)})

    def _event(self, event_type: EventType, held: Held) -> Event:
        given = held.given
        return Event(
            type=event_type,
            execution_id=given.execution_id,
            attempt=given.attempt,
            at=held.started_at,
            worker=self.name,
            queued_at=given.queued_at,
        )

    def _outcome(self, held: Held, event_type: EventType, ended: Ended) -> Event:
        now = self._clock.now()
        return replace(
            self._event(event_type, held),
            at=max(held.started_at, min(now, ended.finished_at or now)),
            started_at=None if Flag.REATTACH in held.given.flags else held.started_at,
            reason=ended.reason,
            message=ended.message,
            exit_code=ended.exit_code,
            retryable=ended.retryable,
        )


def _ended(outcome: Outcome) -> Ended:
    return Ended(str(outcome.reason), outcome.message, outcome.exit_code, finished_at=outcome.finished_at)


def _who(given: Assignment) -> dict[str, object]:
    return {"execution": given.execution_id, "attempt": given.attempt, "job": given.spec.job_name}
