"""What a worker can hold at once: runs, CPUs and memory (pure).

Counted is what a job asks for: the request, or where it names none the limit. A run that asks for
nothing takes a slot and no more, since what it will use is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from containers.capacity import MEBIBYTE, Capacity
from containers.options import read_options
from executions.runspecs import Spec
from scheduler_project.kernel.errors import InvalidFields


@dataclass(frozen=True, slots=True)
class Needs:
    cpus: float = 0.0
    memory_bytes: int = 0

    def __add__(self, other: Needs) -> Needs:
        return Needs(self.cpus + other.cpus, self.memory_bytes + other.memory_bytes)

    def __sub__(self, other: Needs) -> Needs:
        return Needs(self.cpus - other.cpus, self.memory_bytes - other.memory_bytes)

    def __str__(self) -> str:
        parts = [f"{self.cpus:g} CPUs"] if self.cpus else []
        parts += [f"{-(-self.memory_bytes // MEBIBYTE)} MiB"] if self.memory_bytes else []
        return " and ".join(parts) or "nothing"


class Verdict(Enum):
    TAKEN = auto()
    NOT_NOW = auto()  # no slot is free, or another run is awaited: it goes back to the head of its queue
    AWAITED = auto()  # it has a slot while it is looked at, and goes back unless there is room by then
    NEVER = auto()  # this worker is too small for it; it has a slot while it is passed on


class Takes(Enum):
    """What may be taken from the queues."""

    NOTHING = auto()
    BEGUN = auto()  # only what runs on the engine already, and wants to be watched
    ANYTHING = auto()


class Room:
    """``slots`` runs at once, and no more than ``total`` asked for by them together.

    A run that there is no room for now is awaited. It goes back to the head of its queue, where any other
    worker finds it, and this one begins nothing before it has room for it: small runs would otherwise keep a
    large one out for ever. Nobody says when it is gone (cancelled, moved, begun elsewhere): so it is awaited
    no more from time to time, and taken from its queue again if it is still there (slots.py).
    """

    def __init__(self, slots: int, total: Capacity) -> None:
        self.slots = slots
        self.total = total
        self.busy = 0
        self._used = Needs()
        self._awaited: Needs | None = None
        self._in_hand = False  # the one that is awaited

    @property
    def takes(self) -> Takes:
        if self.busy >= self.slots:
            return Takes.NOTHING
        if self._in_hand or not (self._awaited is None or self.fits(self._awaited)):
            return Takes.BEGUN
        return Takes.ANYTHING

    @property
    def awaits(self) -> bool:
        """Whether there is a run that is to be taken before all others."""
        return self._awaited is not None

    def take(self, needs: Needs, *, begun: bool = False) -> Verdict:
        """``begun``: it runs on the engine already, and only wants to be watched."""
        verdict = self._judge(needs, begun)
        if verdict is Verdict.NOT_NOW:
            return verdict
        self.busy += 1
        if verdict is Verdict.TAKEN:
            self._used += needs
            self._awaited = self._awaited if begun else None
        if verdict is Verdict.AWAITED:
            self._awaited, self._in_hand = needs, True
        return verdict

    def _judge(self, needs: Needs, begun: bool) -> Verdict:
        if self.busy >= self.slots:
            return Verdict.NOT_NOW
        if begun:
            return Verdict.TAKEN
        if not holds(self.total, needs):
            return Verdict.NEVER
        if self.takes is not Takes.ANYTHING:
            return Verdict.NOT_NOW
        return Verdict.TAKEN if self.fits(needs) else Verdict.AWAITED

    def move_in(self, needs: Needs) -> None:
        """There is room by now for the run in hand, in the slot that it has."""
        self._awaited, self._in_hand = None, False
        self._used += needs

    def put_back(self) -> None:
        """The run in hand is with the broker again; its slot is left when its task has ended."""
        self._in_hand = False

    def look_again(self) -> None:
        """Await no more what may be gone; not where it is in hand."""
        if not self._in_hand:
            self._awaited = None

    def leave(self, needs: Needs) -> None:
        self.busy -= 1
        self._used -= needs

    def fits(self, needs: Needs) -> bool:
        return holds(self.total, self._used + needs)


def holds(capacity: Capacity, needs: Needs) -> bool:
    cpus = capacity.cpus is None or needs.cpus <= capacity.cpus + 1e-9
    return cpus and (capacity.memory_bytes is None or needs.memory_bytes <= capacity.memory_bytes)


def needs_of(spec: Spec) -> Needs:
    """By its requests; where it has none, by its limits. Of options that cannot be read: nothing."""
    try:
        options = read_options(spec.container)
    except InvalidFields:
        return Needs()  # it will not start
    return Needs(
        options.cpus_request or options.cpus or 0.0,
        options.memory_request_bytes or options.memory_bytes or 0,
    )
