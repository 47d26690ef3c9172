"""One run worker: from delivery to outcome. Celery's signals (signals.py) call in here.

    delivery ─ begin ─┬─ won ────▶ JOB_STARTED confirmed ─▶ acknowledged ─▶ execute ─▶ report
                      ├─ held ───▶ looked at again when the holder's lease has ended
                      └─ done, stale, stopped ─▶ acknowledged, nothing else

What may fail, and then: the worker dies before it acknowledges: the broker delivers again;
after that: its lease ends, the sweep sends the run with REATTACH to the workers of its engine, and
whoever gets it finds the container or, where there is none, reports JOB_LOST. So does any worker where
that engine is given up. The broker is away: events are held, and the container is forgotten only when
its outcome is safe.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings

from containers.outcome import LOSSES, Outcome, Reason
from containers.runtime import Runtime
from containers.secrets import SecretMissing, SecretsUnavailable
from containers.supervise import Detached, Stop
from executions.claims import MOST_TAKE_UPS, Claimed, Claims, Renewal, sent_again
from executions.engines import Site, engine_queue
from executions.entries import Flag
from executions.events import Event, encode
from executions.pools import LEASES, NO_ROOM, POOL_FULL, Pools, describe_full
from executions.states import EventType
from executions.store import Store, StoreUnavailable
from executions.window import Window
from executions.worker.assignments import Assignment
from executions.worker.attempts import (
    NOT_STARTED,
    Ended,
    Held,
    Stopping,
    ended_of,
    ends_its_workers,
    event_of,
    outcome_of,
    start_of,
    unreached,
    who,
)
from executions.worker.commands import RunDefaults
from executions.worker.engine import WorkerEngine
from executions.worker.leases import LeaseKeeper
from executions.worker.outbox import EventsHeld, Outbox
from executions.worker.patience import patiently
from executions.worker.pool_places import PoolPlaces, entry_of
from executions.worker.preparing import Prepared, Unstartable, prepare, prepare_to_attach
from executions.worker.presence import PASSED_ON_AFTER, TOO_LARGE_AFTER, Presence, describe_no_room
from executions.worker.reaper import Reaper
from executions.worker.room import Needs
from executions.worker.run_logs import RunLogs
from executions.worker.slots import Slots
from executions.worker.watching import Watching
from scheduler_project.kernel.clock import Clock

logger = logging.getLogger(__name__)

ENGINE_UNKNOWN_FOR = timedelta(seconds=5)
_T = TypeVar("_T")


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
        self._clock = clock
        self._window = Window(store)
        self._claims = Claims(store, f"{name}/{uuid.uuid4().hex}", settings.PUNCTUAL_RUN_LEASE)
        self._places = PoolPlaces(
            Pools(store, LEASES * settings.PUNCTUAL_RUN_LEASE), self._window, self._clock.now
        )
        self._leases = LeaseKeeper(self._claims, self._places.renew)
        self._presence = Presence(store, name, slots, runtime)
        self._engine = WorkerEngine(runtime, store, settings.PUNCTUAL_ENGINE_WAIT, self._reach)
        self._reaper = Reaper(runtime, store, self._engine, clock, settings.PUNCTUAL_IMAGES_BYTES)
        self._reaper.start()
        self._logs = RunLogs(store)
        self._defaults = defaults
        self._watching = Watching(runtime, self._logs, defaults.secrets, self.stopping)

    def begin(self, given: Assignment) -> Held | None:
        """Claim an attempt and announce its start; None where it is not ours to run.

        Stopping: it could not be claimed in time, or before this worker ends; it is to be left to others.
        """
        site = None
        if Flag.REATTACH in given.flags:
            site = self._patiently(given, lambda: self._engine.site_of(given.key))
            if site is not None and self._leave_to_others(given, site):
                return None
        begun_at = self._clock.now()
        claimed = self._claim(given, begun_at)
        if claimed is Claimed.WON:
            held = Held(given, begun_at, site)
            return self._announce(held) if self._enter(held) else None
        self._turn_down(given, claimed)
        return None

    def _turn_down(self, given: Assignment, claimed: Claimed) -> None:
        if claimed is Claimed.STOPPED:
            self._patiently(given, lambda: self._places.leave(given))
        logger.info("run_not_claimed", extra={**who(given), "claim": str(claimed)})
        if claimed is Claimed.HELD and Flag.RECHECK not in given.flags:
            # The holder may have died just now, before it acknowledged: try once more after its lease.
            later = settings.PUNCTUAL_RUN_LEASE + timedelta(seconds=1)
            self._patiently(given, lambda: self._push(given, given.flags | Flag.RECHECK, later))

    def _reach(self, engine: str) -> None:
        self._claims.engine = engine
        self.slots.consume_also(engine_queue(engine))

    def _leave_to_others(self, given: Assignment, site: Site) -> bool:
        """Send a run whose container is on another engine there, while a worker of that may come."""
        if not self._patiently(given, lambda: self._engine.is_for_others(site)):
            return False
        # A worker that does not know its engine yet may be the one.
        delay = timedelta(0) if self._engine.identity else ENGINE_UNKNOWN_FOR
        self._patiently(given, lambda: self._push(given, given.flags, delay))
        logger.info("run_left_to_its_engine", extra={**who(given), "engine": site.engine})
        return True

    def _enter(self, held: Held) -> bool:
        """A place in every pool of the run; or it waits for one, in nobody's hands."""
        given = held.given
        try:
            full = self._patiently(given, lambda: self._places.enter(given))
        except Stopping:
            self._give_back(held)
            raise
        if full is None:
            return True
        self._give_back(held)
        self._say_waits(held, POOL_FULL, describe_full(full, given.spec))
        logger.info("pool_full", extra={**who(given), "pool": full.pool, "limit": full.limit})
        return False

    def pass_on(self, given: Assignment, needs: Needs) -> None:
        """It needs more than this worker has: send it again, for another, and say so once."""
        if (held := self._wanted(given)) is None:
            return
        try:
            largest = self._patiently(given, lambda: self._presence.largest(given.spec.queue, needs))
            delay = PASSED_ON_AFTER if largest is None else TOO_LARGE_AFTER
            self._patiently(given, lambda: self._push(given, given.flags | Flag.PASSED_ON, delay))
        finally:
            self._give_back(held)
        if Flag.PASSED_ON not in given.flags:
            self._say_waits(held, NO_ROOM, describe_no_room(given.spec.queue, needs, largest))
        logger.info("run_passed_on", extra={**who(given), "needs": str(needs), "has": str(self.slots.total)})

    def look_at(self, given: Assignment, needs: Needs) -> float | None:
        """For how many seconds to keep a run that there is no room for now; None: it is not to begin."""
        if (held := self._wanted(given)) is None:
            return None
        self._give_back(held)
        return self._patiently(given, lambda: self._presence.kept_for_s(given.spec.queue, needs))

    def _wanted(self, given: Assignment) -> Held | None:
        """The claim of what cannot begin here now; None where it is not to begin at all."""
        now = self._clock.now()
        if (claimed := self._claim(given, now)) is Claimed.WON:
            return Held(given, now)
        self._turn_down(given, claimed)
        return None

    def _say_waits(self, held: Held, reason: str, message: str) -> None:
        """The run waits on, and its row says for what."""
        queued = replace(event_of(EventType.QUEUED, held, self.name), queued_at=None)
        generation = held.given.generation
        said = replace(queued, generation=generation, reason=reason, message=f"waits for {message}")
        self.outbox.put(said)

    def _announce(self, held: Held) -> Held:
        try:
            self.outbox.send(start_of(held, self.name))
        except EventsHeld as error:
            self._let_go(held, lambda: self._give_up(held))
            raise Stopping from error
        logger.info("run_started", extra=who(held.given))
        return held

    def _claim(self, given: Assignment, begun_at: datetime) -> Claimed:
        """A second delivery of what this worker runs already is as held as by any other."""
        if not self._leases.reserve(given.key):
            return Claimed.HELD
        claimed, reattach = Claimed.HELD, Flag.REATTACH in given.flags
        try:
            claimed = self._patiently(
                given,
                lambda: self._claims.claim(
                    *given.key, generation=given.generation, reattach=reattach, begun_at=begun_at
                ),
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
            prepared = prepare(given, self._defaults)
        except Unstartable as error:
            return Ended(error.reason, error.message, retryable=False)
        match self._leases.renewed(held.attempt):
            case Renewal.STOPPED:
                return NOT_STARTED
            case Renewal.FENCED:
                raise Detached
        try:
            return ended_of(self._run(held, prepared))
        except SecretMissing as error:
            return Ended(str(Reason.SECRET_MISSING), error.message)

    def _take_up(self, held: Held) -> Ended:
        """Where there is no container any more it is lost; or cancelled, if that was asked for.

        A worker that cannot read what its spec asks for, or the places of its secrets, leaves it to others.
        """
        if self._engine.is_elsewhere(held.site):
            assert held.site is not None  # noqa: S101 -- what is elsewhere is somewhere
            return unreached(held.site.engine)
        if (times := self._take_ups(held)) > MOST_TAKE_UPS:
            logger.error("run_ends_its_workers", extra={**who(held.given), "taken_up": times})
            return ends_its_workers(times)
        try:
            ended = ended_of(self._run(held, prepare_to_attach(held.given, self._defaults)))
        except (SecretsUnavailable, Unstartable) as error:
            logger.error("run_not_taken_up", extra={**who(held.given), "error": error.message})
            raise Detached from error
        if ended.reason in LOSSES and self._leases.renewed(held.attempt) is Renewal.STOPPED:
            return replace(ended, reason=str(Reason.CANCELLED), message=f"cancelled; {ended.message}")
        return ended

    def _take_ups(self, held: Held) -> int:
        try:
            return self._claims.note_take_up(held.given.execution_id)
        except StoreUnavailable:
            return 0  # it is counted the next time

    def _run(self, held: Held, prepared: Prepared) -> Outcome:
        return self._watching.to_end(held, prepared, lambda: self._wanted_stop(held))

    def report(self, held: Held, event_type: EventType, ended: Ended) -> None:
        """Publish the outcome; when it is safe, end the claim and forget the container.

        A worker that is going to end while the broker is away leaves the outcome with the claim,
        where the sweep finds it, and the container to whoever may have to look at it again.
        """
        event = outcome_of(event_type, held, self.name, ended, self._clock.now())
        published = self._published(event)
        self._let_go(held, lambda: self._finish(held, event))
        self._logs.keep(held.attempt)
        if published:
            self._watching.forget(held.given)
        else:
            logger.warning("outcome_left_to_sweep", extra=who(held.given))
        logger.info(
            "run_ended", extra={**who(held.given), "reason": ended.reason, "exit_code": ended.exit_code}
        )

    def _published(self, event: Event) -> bool:
        try:
            self.outbox.send(event)
        except EventsHeld:
            return False
        return True

    def hand_over(self, held: Held, *, begun: bool = True) -> None:
        """Give a run that goes on to whoever attaches next. A claim that is no longer ours stays as it is.

        ``begun``: there may be a container; where nothing was started the next worker is to start it.
        """
        self._places.let_go(held.given)
        if not self.stopping.is_set():
            self._leases.drop(held.attempt)
            return
        self._give_back(held, begun=begun)
        try:
            self._push(held.given, Flag.REATTACH if begun else held.given.flags, timedelta(0))
            self._claims.forget_take_ups(held.given.execution_id)
        except StoreUnavailable:
            logger.warning("handed_over_by_lease", extra=who(held.given))  # the sweep finds it

    def close(self) -> None:
        """Shutdown order: intake has ended, runs are handed over, now the events, the logs, the leases."""
        if not self.outbox.close(timeout_s=2.0):
            logger.warning("events_left", extra={"worker": self.name})
        self._presence.close()
        self._leases.close()
        self._reaper.close()
        self._engine.close()
        self._runtime.close()

    def _patiently(self, given: Assignment, call: Callable[[], _T]) -> _T:
        return patiently(self.stopping, given, call)

    def _push(self, given: Assignment, flags: Flag, delay: timedelta) -> None:
        entry = entry_of(given, flags, self._clock.now() + delay)
        sent_again(self._window.store, [given.execution_id])
        self._window.add([entry], {given.spec_id: given.spec.canonical})

    def _wanted_stop(self, held: Held) -> Stop | None:
        answer = self._leases.answer(held.attempt)
        if answer is Renewal.HELD:
            return Stop.DETACH if self.stopping.is_set() else None
        return Stop.CANCEL if answer is Renewal.STOPPED else Stop.DETACH

    def _finish(self, held: Held, event: Event) -> None:
        self._claims.finish(*held.attempt, encode([event]))
        self._places.leave(held.given)

    def _give_up(self, held: Held) -> None:
        self._claims.give_up(*held.attempt)
        self._places.leave(held.given)

    def _give_back(self, held: Held, *, begun: bool = False) -> None:
        """End the claim. ``begun``: this worker has begun it; what another has begun stays known."""
        known = begun or Flag.REATTACH in held.given.flags
        self._let_go(held, lambda: self._claims.give_up(*held.attempt, begun=known))

    def _let_go(self, held: Held, release: Callable[[], None]) -> None:
        if not self._leases.end(held.attempt, release):
            logger.warning("claim_ends_later", extra=who(held.given))
