"""What the simulated system is made of, and how long things take in it: the product's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from beat.sweeper import SweepTimes
from executions.claims import Claims, Renewal
from executions.entries import Popped
from executions.events import Event
from executions.folding import Timing
from executions.worker.assignments import Assignment
from executions.worker.attempts import Ended, Held

MS, S = timedelta(milliseconds=1), timedelta(seconds=1)
WINDOW, DISPATCH_LEASE, RUN_LEASE = 300 * S, 5 * S, 10 * S
ENQUEUE_TIMEOUT, ENGINE_WAIT, GRACE = 300 * S, 120 * S, 60 * S
TIMING = Timing(ENQUEUE_TIMEOUT, RUN_LEASE)
TIMES = SweepTimes(ENQUEUE_TIMEOUT, RUN_LEASE, GRACE, ENGINE_WAIT)


@dataclass(slots=True, eq=False)
class Dispatch:
    """A run that a beat has popped; ``until``: when it is no longer this beat's, ms."""

    run: Popped
    until: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A run in a queue of the broker."""

    queue: str
    body: bytes


class Stage(IntEnum):
    """How far a worker is with a delivery; killed between any two, it leaves what was done before."""

    TAKEN = 0
    REFUSED = 1  # not to be run here; not acknowledged yet
    CLAIMED = 2
    ANNOUNCED = 3  # JOB_STARTED is safe
    BEGUN = 4  # acknowledged
    CLEARED = 5  # its claim was renewed a moment ago: the container may be started
    WATCHING = 6
    ENDED = 7
    SAID = 8  # its outcome is safe
    RELEASED = 9  # the claim has ended; the container is still there


UNACKNOWLEDGED = {Stage.TAKEN, Stage.REFUSED, Stage.CLAIMED, Stage.ANNOUNCED}
CLAIMED_STAGES = {stage for stage in Stage if Stage.CLAIMED <= stage <= Stage.SAID}


@dataclass(slots=True, eq=False)
class Hand:
    """A delivery in a worker's hands. ``overslept``: its worker was stopped just before the start."""

    message: Message
    given: Assignment
    stage: Stage = Stage.TAKEN
    held: Held | None = None
    answer: Renewal = Renewal.HELD
    ended: Ended | None = None
    outcome: Event | None = None
    overslept: bool = False


@dataclass(slots=True, eq=False)
class Worker:
    """A place for a worker process, on a host with an ``engine``; ``lives``: how often it was started."""

    name: str
    engine: str
    claims: Claims
    lives: int = 1
    alive: bool = True
    stalled: bool = False
    hands: list[Hand] = field(default_factory=list)

    @property
    def acts(self) -> bool:
        return self.alive and not self.stalled
