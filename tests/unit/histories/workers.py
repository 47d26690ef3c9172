"""The workers of the simulated system, step by step, and the engines on which their containers run.

The order of steps is that of executions/worker/lifecycle.py; what is decided is decided by the product.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from containers.outcome import Reason
from executions.claims import MOST_TAKE_UPS, Claimed, Claims, Renewal, known_claims
from executions.endings import ending
from executions.engines import engine_queue, known_sites
from executions.entries import Flag
from executions.events import encode
from executions.states import State
from executions.worker.assignments import read_arguments
from executions.worker.attempts import (
    NOT_STARTED,
    Ended,
    Held,
    ends_its_workers,
    outcome_of,
    start_of,
    type_of,
    unreached,
)
from executions.worker.pool_places import entry_of
from tests.unit.histories.parts import (
    CLAIMED_STAGES,
    ENGINE_WAIT,
    RUN_LEASE,
    UNACKNOWLEDGED,
    Hand,
    S,
    Stage,
    Worker,
)
from tests.unit.histories.system import RUNS, System

LONGEST_ROUND_MS = 9_000  # shorter than a lease: who is not stalled keeps what it has
KILLED = 137


class Workers:
    """``containers``: exit codes by (engine, attempt), None while it runs. ``started``: attempts, in order.

    ``excused``: why what had been started, or was over, was started all the same. ``gone``: engines that will
    not be back.
    """

    def __init__(self, system: System, engines: Sequence[str]) -> None:
        self.system = system
        self.workers = [self._new(f"w{at}", engine) for at, engine in enumerate(engines)]
        self.containers: dict[tuple[str, int], int | None] = {}
        self.started: list[int] = []
        self.excused: list[str] = []
        self.forgotten = False
        self.gone: set[str] = set()
        self.pass_time(timedelta(milliseconds=1))

    def _new(self, name: str, engine: str, life: int = 1) -> Worker:
        claims = Claims(self.system.store, f"{name}/{life}", RUN_LEASE)
        claims.engine = engine
        return Worker(name, engine, claims, life)

    # Time, and what may happen to a process at any moment.

    def pass_time(self, length: timedelta) -> None:
        """Whoever is alive and not stalled renews its leases meanwhile."""
        left = length // timedelta(milliseconds=1)
        while left > 0:
            passes = min(left, LONGEST_ROUND_MS) if self._held() else left
            self.system.redis.now += passes
            left -= passes
            self._renew()
        self.system.served = any(worker.acts for worker in self.workers)
        for engine in {worker.engine for worker in self.workers if worker.acts}:
            self.system.engines.announce(engine)

    def _held(self) -> list[tuple[Worker, Hand]]:
        return [
            (worker, hand)
            for worker in self.workers
            if worker.acts
            for hand in worker.hands
            if hand.stage in CLAIMED_STAGES
        ]

    def _renew(self) -> None:
        for worker, hand in self._held():
            (hand.answer,) = worker.claims.renew([hand.given.key])
        for worker in self.workers:
            if worker.stalled:
                for hand in worker.hands:
                    hand.overslept |= hand.stage is Stage.CLEARED

    def kill(self, worker: Worker, *, loses: bool = False) -> None:
        """kill -9. ``loses``: its broker forgets deliveries with their consumer (kombu's Redis transport)."""
        back = [hand.message for hand in worker.hands if hand.stage in UNACKNOWLEDGED]
        worker.hands.clear()
        worker.alive = worker.stalled = False
        for message in [] if loses else back:
            self.system.queues[message.queue].insert(0, message)

    def start(self, worker: Worker) -> None:
        new = self._new(worker.name, worker.engine, worker.lives + 1)
        self.workers[self.workers.index(worker)] = new

    def end(self, worker: Worker) -> None:
        """SIGTERM: what it has is left to others, in the way that depends on how far it is."""
        for hand in list(worker.hands):
            if hand.stage in UNACKNOWLEDGED:
                if hand.stage in CLAIMED_STAGES:
                    worker.claims.give_up(*hand.given.key)
                self.system.queues[hand.message.queue].insert(0, hand.message)
            elif hand.stage <= Stage.WATCHING:
                self._hand_over(worker, hand)
            else:
                while hand in worker.hands:
                    self.step(worker, hand)
        worker.hands.clear()
        worker.alive = False

    def _hand_over(self, worker: Worker, hand: Hand) -> None:
        given, begun = hand.given, hand.stage is Stage.WATCHING
        known = begun or Flag.REATTACH in given.flags
        worker.claims.give_up(*given.key, begun=known)
        self._push(hand, Flag.REATTACH if begun else given.flags, timedelta(0))
        worker.claims.forget_take_ups(given.execution_id)

    def lose_host(self, engine: str, *, for_good: bool) -> None:
        others = [worker for worker in self.workers if worker.engine != engine]
        if for_good and others and not self.gone:
            self.gone.add(engine)
        for key in [key for key in self.containers if key[0] == engine]:
            del self.containers[key]
        for worker in self.workers:
            if worker.engine == engine:
                self.kill(worker)

    def reap(self, worker: Worker) -> None:
        """``Reaper.run_once``, with an answer of the database."""
        row = self.system.row
        (claim,) = known_claims(self.system.store, [row.id])
        for engine, attempt in list(self.containers):
            held = claim is not None and claim.attempt == attempt and not claim.outcome
            if engine == worker.engine and not held and ending(row.state, row.attempt).is_over(attempt):
                del self.containers[engine, attempt]

    # One delivery.

    def queues_of(self, worker: Worker) -> list[str]:
        """Those in which something waits for it: what has begun comes first."""
        return [name for name in (engine_queue(worker.engine), RUNS) if self.system.queues[name]]

    def take(self, worker: Worker, queue: str) -> None:
        message = self.system.queues[queue].pop(0)
        worker.hands.append(Hand(message, read_arguments(json.loads(message.body)[1])))

    def step(self, worker: Worker, hand: Hand) -> bool:
        """One step further; whether there was one (False: its container runs)."""
        before = hand.stage
        getattr(self, f"_{hand.stage.name.lower()}")(worker, hand)
        return hand.stage is not before or hand not in worker.hands

    def _taken(self, worker: Worker, hand: Hand) -> None:
        given, system, site = hand.given, self.system, None
        hand.stage = Stage.REFUSED
        if Flag.REATTACH in given.flags:
            (site,) = known_sites(system.store, [given.key])
            if site is not None and site.is_for_others(
                worker.engine, system.now, site.given_up_at(system.engines.seen(), ENGINE_WAIT)
            ):
                self._push(hand, given.flags, timedelta(0))
                return
        claimed = self._claim(worker, hand)
        if claimed is Claimed.WON:
            hand.held = Held(given, system.now, site)
            hand.stage, hand.answer = Stage.CLAIMED, Renewal.HELD
        elif claimed is Claimed.HELD and Flag.RECHECK not in given.flags:
            self._push(hand, given.flags | Flag.RECHECK, RUN_LEASE + S)

    def _claim(self, worker: Worker, hand: Hand) -> Claimed:
        given = hand.given
        if any(other.given.key == given.key and other.stage in CLAIMED_STAGES for other in worker.hands):
            return Claimed.HELD
        return worker.claims.claim(
            *given.key,
            generation=given.generation,
            reattach=Flag.REATTACH in given.flags,
            begun_at=self.system.now,
        )

    def _refused(self, worker: Worker, hand: Hand) -> None:
        worker.hands.remove(hand)

    def _claimed(self, worker: Worker, hand: Hand) -> None:
        assert hand.held is not None
        self.system.events.append(encode([start_of(hand.held, worker.name)]))
        hand.stage = Stage.ANNOUNCED

    def _announced(self, worker: Worker, hand: Hand) -> None:
        hand.stage = Stage.BEGUN

    def _begun(self, worker: Worker, hand: Hand) -> None:
        assert hand.held is not None
        if Flag.REATTACH in hand.given.flags:
            self._take_up(worker, hand)
            return
        (hand.answer,) = worker.claims.renew([hand.given.key])
        if hand.answer is Renewal.STOPPED:
            self._ends(hand, NOT_STARTED)
        elif hand.answer is Renewal.FENCED:
            worker.hands.remove(hand)
        else:
            hand.stage = Stage.CLEARED

    def _take_up(self, worker: Worker, hand: Hand) -> None:
        assert hand.held is not None
        site = hand.held.site
        if site is not None and site.is_elsewhere(worker.engine):
            self._ends(hand, unreached(site.engine))
        elif (times := worker.claims.note_take_up(hand.given.execution_id)) > MOST_TAKE_UPS:
            self._ends(hand, ends_its_workers(times))
        elif (worker.engine, hand.given.attempt) in self.containers:
            hand.stage = Stage.WATCHING
        else:
            self._ends_lost(worker, hand)

    def _ends_lost(self, worker: Worker, hand: Hand) -> None:
        (hand.answer,) = worker.claims.renew([hand.given.key])
        reason = Reason.CANCELLED if hand.answer is Renewal.STOPPED else Reason.LOST
        self._ends(hand, Ended(str(reason), "there is no container"))

    def _cleared(self, worker: Worker, hand: Hand) -> None:
        """A runtime's ``launch`` attaches to what is there by that name."""
        key = worker.engine, hand.given.attempt
        if key not in self.containers:
            self._check_start(hand)
            self.containers[key] = None
            self.started.append(hand.given.attempt)
        hand.stage = Stage.WATCHING

    def _check_start(self, hand: Hand) -> None:
        row, attempt = self.system.row, hand.given.attempt
        over = not self.system.live or row.attempt > attempt
        if attempt not in self.started and not over:
            return
        heard_at = self.system.heard_at.get(attempt)
        late = heard_at is not None and self.system.now - heard_at >= self.system.kept
        reasons = {"Redis lost all": self.forgotten, "overslept": hand.overslept, "late": late}
        excuses = [excuse for excuse, holds in reasons.items() if holds]
        said = f"attempt {attempt} is started; started before: {self.started}; the row: {row}"
        assert excuses, said
        assert row.state is not State.CANCELLED or excuses, said
        self.excused.append(excuses[0])

    def _watching(self, worker: Worker, hand: Hand) -> None:
        """``container.wait`` first, then what is wanted of it."""
        key = worker.engine, hand.given.attempt
        if key not in self.containers:
            if Flag.REATTACH in hand.given.flags:
                self._ends_lost(worker, hand)
            else:
                self._ends(hand, Ended(str(Reason.LOST), "its container has vanished"))
        elif (code := self.containers[key]) is not None:
            stopped = code != 0 and hand.answer is Renewal.STOPPED
            failed = Reason.CANCELLED if stopped else Reason.FAILED
            self._ends(hand, Ended(str(Reason.SUCCEEDED if code == 0 else failed), "", code))
        elif hand.answer is Renewal.FENCED:
            worker.hands.remove(hand)
        elif hand.answer is Renewal.STOPPED:
            self.containers[key] = KILLED
            self._ends(hand, Ended(str(Reason.CANCELLED), "cancelled", KILLED))

    def _ends(self, hand: Hand, ended: Ended) -> None:
        hand.ended, hand.stage = ended, Stage.ENDED

    def _ended(self, worker: Worker, hand: Hand) -> None:
        assert hand.held is not None and hand.ended is not None
        now = self.system.now
        hand.outcome = outcome_of(type_of(hand.ended), hand.held, worker.name, hand.ended, now)
        self.system.events.append(encode([hand.outcome]))
        hand.stage = Stage.SAID

    def _said(self, worker: Worker, hand: Hand) -> None:
        assert hand.outcome is not None
        worker.claims.finish(*hand.given.key, encode([hand.outcome]))
        hand.stage = Stage.RELEASED

    def _released(self, worker: Worker, hand: Hand) -> None:
        self.containers.pop((worker.engine, hand.given.attempt), None)
        worker.hands.remove(hand)

    def _push(self, hand: Hand, flags: Flag, delay: timedelta) -> None:
        entry = entry_of(hand.given, flags, self.system.now + delay)
        self.system.send_again()
        self.system.window.add([entry], self.system.specs)
