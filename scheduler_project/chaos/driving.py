"""Carries out the faults of a plan on a running system, and brings back what ends by itself."""

from __future__ import annotations

import heapq
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from scheduler_project.chaos.plan import SERVERS, Act, Fault, Plan
from scheduler_project.chaos.proxies import some
from scheduler_project.chaos.system import ChaosSystem

RESTARTED_AFTER_S = 1.0
Tell = Callable[[str], None]


@dataclass(slots=True)
class Driver:
    """``tell``: is told of each fault as it comes. ``turn`` is called often, with the seconds since the
    first fire."""

    system: ChaosSystem
    plan: Plan
    tell: Tell
    done: Counter[str] = field(default_factory=Counter)
    away: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By server: for how long it was silent or refused, at most, in s."""
    ended_alone: list[str] = field(default_factory=list)
    """Processes that ended though nobody killed them; a deployment starts them again, and so does this."""
    _todo: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _down: set[str] = field(default_factory=set)
    _random: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        self._random.seed(f"{self.plan.seed} connections")
        for fault in self.plan.faults:
            self._at(fault.at_s, partial(self._strike, fault))

    @property
    def over(self) -> bool:
        """Whether every fault has come and gone."""
        return not self._todo

    def turn(self, now_s: float) -> None:
        while self._todo and self._todo[0][0] <= now_s:
            heapq.heappop(self._todo)[2]()
        for name, process in self.system.processes.items():
            if not process.alive and name not in self._down:
                self.ended_alone.append(name)
                self.tell(f"{now_s:7.1f} s  {name} has ended by itself")
                self._restart_at(now_s + RESTARTED_AFTER_S, name)

    def _at(self, at_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._todo, (at_s, next(self._numbers), act))

    def _strike(self, fault: Fault) -> None:
        self.tell(str(fault))
        self.done[f"{fault.act} {fault.target}"] += 1
        if fault.target in SERVERS:
            self._hit_server(fault)
            return
        for number in fault.which:
            self._hit_process(fault, f"{fault.target}{number + 1}")

    def _hit_server(self, fault: Fault) -> None:
        proxy = self.system.proxies[fault.target]
        chosen = some(self._random, fault.share)
        if fault.act is Act.CUT:
            proxy.cut(chosen)
            return
        if fault.act is Act.SILENCE:
            proxy.hold(chosen)
        else:
            proxy.refuse()
        self.away[fault.target] = max(self.away[fault.target], fault.lasts_s)
        self._at(fault.at_s + fault.lasts_s, proxy.restore)

    def _hit_process(self, fault: Fault, name: str) -> None:
        process = self.system.processes[name]
        if name in self._down:
            return
        if fault.act is Act.KILL:
            process.kill()
            self._restart_at(fault.at_s + fault.lasts_s, name)
            return
        process.signal(signal.SIGSTOP)
        self._at(fault.at_s + fault.lasts_s, lambda: process.signal(signal.SIGCONT))

    def _restart_at(self, at_s: float, name: str) -> None:
        def restart() -> None:
            self.system.start(name)
            self._down.discard(name)

        self._down.add(name)
        self._at(at_s, restart)
