"""Starts, watches, restarts and stops child processes. One thread, one loop; knows nothing of Punctual."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import PunctualError
from scheduler_project.standalone.children import Program, end_group, spawn
from scheduler_project.standalone.interrupts import Interrupts

TURN_S = 0.2  # a signal, also that of a child's end, cuts it short
STEADY_S = 30.0  # who lived this long begins again with the shortest delay
LONGEST_DELAY_S = 10.0


class StartFailed(PunctualError):
    """A part could not be started."""


class StopRequested(PunctualError):
    """Somebody asked for the end."""


class StopAtOnce(PunctualError):
    """Somebody asked for the end twice."""


class Surroundings(Protocol):
    """What the supervisor tells the world about its children."""

    def say(self, line: str) -> None: ...

    def started(self, program: Program, pid: int) -> None: ...

    def ended(self, program: Program) -> None: ...

    def turn(self) -> None:
        """Called several times a second."""
        ...

    def last_words(self, program: Program) -> str:
        """The end of what it logged, or nothing."""
        ...


@dataclass(slots=True)
class _Child:
    program: Program
    delays: Iterator[float]
    pid: int = 0
    started_at: float = 0.0
    again_at: float | None = None
    code: int | None = None

    @property
    def alive(self) -> bool:
        return self.pid != 0


class Supervisor:
    def __init__(self, surroundings: Surroundings, interrupts: Interrupts) -> None:
        self._world = surroundings
        self._interrupts = interrupts
        self._children: dict[str, _Child] = {}
        self._stopping = False

    # --- Start -------------------------------------------------------------------------------

    def start(self, program: Program) -> None:
        """StopRequested or StopAtOnce where a signal has asked for the end meanwhile."""
        self._heed()
        child = _Child(program, exponential(0.2, 2.0, LONGEST_DELAY_S))
        self._children[program.name] = child
        self._start(child)

    def finish(self, program: Program, timeout_s: float) -> None:
        """Run a program that ends by itself. StartFailed unless its exit code is 0 in time."""
        self.start(program)
        self.conclude(program.name, timeout_s)

    def conclude(self, name: str, timeout_s: float) -> None:
        """Wait until a started program has ended by itself. StartFailed unless its exit code is 0."""
        code = self.exit_code(name, timeout_s)
        program = self._children[name].program
        if code is None:
            self.kill([name])
            raise StartFailed(f"{name} is not done after {timeout_s:.0f} s; see {program.log}")
        del self._children[name]
        if code != 0:
            raise StartFailed(f"{name} failed ({describe_end(code)})" + self._quote(program))

    def wait_until(self, name: str, ready: Callable[[], bool], timeout_s: float) -> None:
        """Until ``ready()``. StartFailed when ``name`` ends before, or after ``timeout_s`` seconds."""
        until = monotonic() + timeout_s
        while not ready():
            child = self._children[name]
            if child.code is not None:
                raise StartFailed(f"{name} ended ({describe_end(child.code)})" + self._quote(child.program))
            if monotonic() > until:
                raise StartFailed(f"{name} is not ready after {timeout_s:.0f} s; see {child.program.log}")
            self._turn(0.02)

    # --- Watch -------------------------------------------------------------------------------

    def exit_code(self, name: str, timeout_s: float | None = None) -> int | None:
        """Wait until ``name``, which is not restarted, has ended; None after ``timeout_s`` seconds.

        Raises StopRequested or StopAtOnce when a signal asks for it.
        """
        until = None if timeout_s is None else monotonic() + timeout_s
        child = self._children[name]
        while child.alive or child.again_at is not None:
            if until is not None and monotonic() > until:
                return None
            self._turn(TURN_S)
        return child.code

    @property
    def names(self) -> list[str]:
        """Of all that it has started and not stopped, in that order."""
        return list(self._children)

    def knows(self, name: str) -> bool:
        """Whether ``name`` runs or is to be started again."""
        child = self._children.get(name)
        return child is not None and (child.alive or child.again_at is not None)

    # --- Stop --------------------------------------------------------------------------------

    def wind_down(self) -> None:
        """From here on nothing is restarted, and the request to stop is being heeded already."""
        self._stopping = True

    def stop(self, names: Sequence[str]) -> list[str]:
        """End ``names`` together and wait; says which had to be killed. Others are not restarted any more."""
        self._stopping = True
        children = [self._children[name] for name in names if name in self._children]
        begun = monotonic()
        for child in children:
            child.again_at = None
            if child.alive:
                self._signal(child, child.program.stop_signal)
        overdue = [child for child in children if not self._gone(child, begun + child.program.stop_timeout_s)]
        for child in overdue:
            end_group(child.pid, signal.SIGKILL)
            self._gone(child, monotonic() + 5.0)
        for child in children:
            self._clear_up(child)
        return [child.program.name for child in overdue]

    def kill(self, names: Sequence[str]) -> None:
        """End ``names`` without asking."""
        children = [self._children[name] for name in names if name in self._children]
        for child in children:
            child.again_at = None
            if child.alive:
                end_group(child.pid, signal.SIGKILL)
        until = monotonic() + 5.0
        for child in children:
            self._gone(child, until, patient=False)
            self._clear_up(child)

    def kill_all(self) -> None:
        self._stopping = True
        self.kill(list(self._children))

    # --- Inside ------------------------------------------------------------------------------

    def _start(self, child: _Child) -> None:
        child.again_at = None
        child.code = None
        child.pid = spawn(child.program)
        child.started_at = monotonic()
        self._world.started(child.program, child.pid)

    def _turn(self, seconds: float, *, patient: bool = True) -> None:
        self._interrupts.sleep(seconds)
        self._reap()
        self._world.turn()
        self._heed(patient=patient)
        if self._stopping:
            return
        for child in list(self._children.values()):
            if child.again_at is not None and monotonic() >= child.again_at:
                self._start(child)

    def _heed(self, *, patient: bool = True) -> None:
        if patient and self._interrupts.at_once:
            raise StopAtOnce
        if self._interrupts.stop and not self._stopping:
            raise StopRequested

    def _reap(self) -> None:
        for child in list(self._children.values()):
            if not child.alive:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._note_end(child, os.waitstatus_to_exitcode(status))

    def _note_end(self, child: _Child, code: int) -> None:
        end_group(child.pid, signal.SIGKILL)  # what it may have left in its group
        child.pid = 0
        child.code = code
        self._world.ended(child.program)
        if self._stopping or not child.program.restart:
            return
        if monotonic() - child.started_at > STEADY_S:
            child.delays = exponential(0.2, 2.0, LONGEST_DELAY_S)
        delay = next(child.delays)
        child.again_at = monotonic() + delay
        why = self._quote(child.program) if code > 0 else ""
        what = f"{child.program.name} ended unasked ({describe_end(code)})"
        self._world.say(f"{what}; starting it again in {delay:g} s{why}")

    def _signal(self, child: _Child, number: signal.Signals) -> None:
        try:
            os.kill(child.pid, number)
        except ProcessLookupError:
            self._reap()

    def _gone(self, child: _Child, until: float, *, patient: bool = True) -> bool:
        while child.alive and monotonic() < until:
            self._turn(0.05, patient=patient)
        return not child.alive

    def _clear_up(self, child: _Child) -> None:
        if not child.alive:
            self._children.pop(child.program.name, None)

    def _quote(self, program: Program) -> str:
        words = self._world.last_words(program)
        return f": {words} (all of it in {program.log})" if words else f"; see {program.log}"


def describe_end(code: int) -> str:
    """An exit code as people say it; negative means the signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
