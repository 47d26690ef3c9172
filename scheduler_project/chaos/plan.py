"""What is to happen, from a seed: which jobs fire when, and which faults come meanwhile (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any

KINDS = ("beat", "worker", "recorder", "auditor")
SERVERS = ("PostgreSQL", "Redis", "broker")
EACH = 2  # processes of a kind, so that there is somebody to take over

STEADY_EVERY = timedelta(seconds=5)
SPIKE_EVERY = timedelta(seconds=15)
SPIKE_SHARE = 0.3  # of the runs of jobs that recur: all of a spike at the same instant
ONCE_SHARE, MOST_ONCE = 0.05, 100
LASTING_SHARE = 0.05  # of the jobs: their runs last, so that workers die over them
FAULT_EVERY_S = 3.0  # on average
CALM_S = 2.0  # without a fault, at the beginning


class Act(StrEnum):
    KILL = "kill"
    """kill -9; started again after ``lasts_s``."""
    STOP = "stop"
    """SIGSTOP, and SIGCONT after ``lasts_s``."""
    CUT = "cut"
    """Connections are closed, and may come back at once."""
    SILENCE = "silence"
    """Nothing passes, in either direction, for ``lasts_s``; then all of it does."""
    REFUSE = "refuse"
    """Connections are closed, and new ones refused for ``lasts_s``."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``at_s``: seconds after the first fire. ``which``: of a kind of process, its numbers; of a server,
    empty. ``share``: of the connections, how many are hit."""

    at_s: float
    act: Act
    target: str
    which: tuple[int, ...] = ()
    lasts_s: float = 0.0
    share: float = 1.0

    def __str__(self) -> str:
        whom = f"{self.target} {' and '.join(str(n + 1) for n in self.which)}" if self.which else self.target
        part = "" if self.share == 1 else f", {self.share:.0%} of the connections"
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:7.1f} s  {self.act} {whom}{lasts}{part}"


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job with ``fires`` fires, ``every`` apart, the first ``offset`` after the first of all."""

    name: str
    offset: timedelta
    fires: int
    every: timedelta | None
    lasts_s: float

    def due(self, first: datetime) -> Iterator[datetime]:
        for number in range(self.fires):
            yield first + self.offset + number * (self.every or timedelta(0))

    def body(self, first: datetime, command: str) -> dict[str, Any]:
        """As ``manage.py apply_jobs`` takes it."""
        return {
            "name": self.name,
            "owner": "chaos",
            "type": "Script",
            "command": command,
            "schedule": self._schedule(first),
            "overlap": "allow",
            "misfire": "all",
        }

    def _schedule(self, first: datetime) -> dict[str, str]:
        fires = [fire.isoformat() for fire in self.due(first)]
        if self.every is None:
            return {"at": fires[0]}
        every = f"{self.every // timedelta(milliseconds=1)}ms"
        return {"every": every, "anchor": fires[0], "start": fires[0], "end": fires[-1]}


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    lasts_s: float
    jobs: tuple[PlannedJob, ...]
    faults: tuple[Fault, ...]

    @property
    def runs(self) -> int:
        return sum(job.fires for job in self.jobs)

    def due(self, first: datetime) -> dict[tuple[str, datetime], float]:
        """Every run that must be, by its job's name and its planned time; and how long it lasts, in s."""
        return {(job.name, fire): job.lasts_s for job in self.jobs for fire in job.due(first)}


def make_plan(seed: int, runs: int, lasts_s: float) -> Plan:
    """The same for the same three; of two lengths, the faults of the shorter are the first of the longer."""
    jobs = _jobs(Random(f"{seed} jobs"), runs, lasts_s)  # noqa: S311 -- to be repeated, not to be secret
    faults = _faults(Random(f"{seed} faults"), lasts_s)  # noqa: S311
    return Plan(seed, lasts_s, tuple(jobs), tuple(faults))


# --- The load --------------------------------------------------------------------------------


def _jobs(random: Random, runs: int, lasts_s: float) -> Iterator[PlannedJob]:
    """Some jobs that run once, and as many that recur as give the rest; what is then left is once, too."""
    recurring = runs - min(int(runs * ONCE_SHARE), MOST_ONCE)
    left = runs
    for name, share, every in (
        ("steady", 1 - SPIKE_SHARE, STEADY_EVERY),
        ("spike", SPIKE_SHARE, SPIKE_EVERY),
    ):
        fires = max(1, int(lasts_s / every.total_seconds()))
        number = int(recurring * share / fires)
        left -= number * fires
        together = _offset(random, every / 2)
        for n in range(number):
            offset = _offset(random, every) if name == "steady" else together
            yield PlannedJob(f"{name}-{n}", offset, fires, every, _length(random))
    for n in range(left):
        yield PlannedJob(f"once-{n}", _offset(random, timedelta(seconds=lasts_s)), 1, None, _length(random))


def _offset(random: Random, below: timedelta) -> timedelta:
    return timedelta(milliseconds=random.randrange(below // timedelta(milliseconds=1)))


def _length(random: Random) -> float:
    lasts = random.random() < LASTING_SHARE
    return round(random.uniform(0.5, 3.0), 1) if lasts else 0.0


# --- The faults ------------------------------------------------------------------------------


def _faults(random: Random, lasts_s: float) -> Iterator[Fault]:
    """One of each before any comes again, at random intervals, until the last fire."""
    at_s = CALM_S
    while True:
        everything = [(act, target) for act in (Act.KILL, Act.STOP) for target in KINDS]
        everything += [(act, target) for act in (Act.CUT, Act.SILENCE, Act.REFUSE) for target in SERVERS]
        random.shuffle(everything)
        for act, target in everything:
            at_s += random.uniform(0.3, 2 * FAULT_EVERY_S - 0.3)
            if at_s > lasts_s:
                return
            yield _fault(random, round(at_s, 2), act, target)


def _fault(random: Random, at_s: float, act: Act, target: str) -> Fault:
    if target in SERVERS:
        lasts_s = 0.0 if act is Act.CUT else round(random.uniform(0.5, 8.0), 1)
        share = 1.0 if act is Act.REFUSE else random.choice((0.5, 1.0))
        return Fault(at_s, act, target, lasts_s=lasts_s, share=share)
    which = tuple(range(EACH)) if random.random() < 0.25 else (random.randrange(EACH),)
    lasts_s = round(random.uniform(0.0, 5.0) if act is Act.KILL else random.uniform(0.5, 12.0), 1)
    return Fault(at_s, act, target, which, lasts_s)
