"""All of the overview together; a part that does not answer is named, and the rest is there.

It is made at most once a second for each set of teams, and what is the same for everybody (beats, workers,
queues) once for all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TypeVar

from django.conf import settings

from beat.overview import Beats, beats
from executions.attendance import attending
from executions.bus.connection import BusUnavailable
from executions.bus.depths import QueueFacts
from executions.models import Execution
from executions.overview import (
    BusyWorker,
    Flow,
    QueueState,
    Teams,
    Unstarted,
    flow,
    next_runs,
    present_of,
    queues,
    running,
    unstarted,
    workers,
)
from executions.presence import PresentWorker
from executions.store import Store, StoreUnavailable
from jobs.overview import JobTrouble, job_failures, jobs_most_late, queues_in_use
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.sharing import Shared
from scheduler_project.operating.obstacles import Obstacle, obstacles

logger = logging.getLogger(__name__)

KEPT_S = 1.0
QUEUES_KEPT_S = 30.0
ANSWER_WITHIN_S = 1.0
_shared = Shared(KEPT_S)
_queue_names = Shared(QUEUES_KEPT_S)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class System:
    """What is the same for everybody. None: the part that knows it does not answer; ``away`` names it."""

    away: list[str]
    beats: Beats | None
    workers: list[BusyWorker]
    running: int
    workers_known: bool
    queues: list[QueueState] | None
    system_queues: dict[str, QueueFacts] | None

    @property
    def present(self) -> list[PresentWorker] | None:
        """The workers that are there."""
        return present_of(self.workers) if self.workers_known else None


@dataclass(frozen=True, slots=True)
class Overview:
    """``teams``: whose runs are in it; None: everybody's."""

    at: datetime
    teams: Teams
    system: System
    flow: Flow
    unstarted: list[Unstarted]
    obstacles: list[Obstacle]
    failures: list[JobTrouble]
    late: list[JobTrouble]
    next_runs: list[Execution]


def overview(teams: Teams) -> Overview:
    """As it is now, or was a second ago."""
    made: Overview = _shared.get(("teams", teams), lambda: _make(teams))
    return made


def _make(teams: Teams) -> Overview:
    now = utcnow()
    system: System = _shared.get("system", lambda: _system(now))
    waiting = unstarted(now, teams)
    return Overview(
        at=now,
        teams=teams,
        system=system,
        flow=flow(now, teams),
        unstarted=waiting,
        obstacles=obstacles(system.beats, system.present, waiting, now, system.system_queues),
        failures=job_failures(now, teams),
        late=jobs_most_late(now, teams),
        next_runs=next_runs(now, teams),
    )


def _system(now: datetime) -> System:
    away: list[str] = []
    store, under_way = _store(), running(now)
    found_beats = _ask("redis", away, lambda: beats(store, settings.PUNCTUAL_SHARDS))
    found = None if found_beats is None else _ask("redis", away, lambda: workers(store, under_way))
    present = None if found is None else present_of(found)
    names = _queue_names.get("queues", queues_in_use)
    consumers = None if found is None else _ask("redis", away, lambda: attending(store))
    asked = _ask("broker", away, lambda: queues(names, present, consumers))
    return System(
        away=away,
        beats=found_beats,
        workers=workers(None, under_way) if found is None else found,
        running=len(under_way),
        workers_known=found is not None,
        queues=asked and asked[0],
        system_queues=asked and dict(asked[1]),
    )


def _ask(part: str, away: list[str], ask: Callable[[], Answer]) -> Answer | None:
    try:
        return ask()
    except (StoreUnavailable, BusUnavailable) as error:
        logger.warning("overview_without", extra={"part": part, "error": error.message})
        away.append(part)
        return None


@cache
def _store() -> Store:
    """One of its own, that gives up sooner: somebody waits for the page."""
    return Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE, timeout_s=ANSWER_WITHIN_S)
