"""How the whole system stands: who is there, what runs where, what waits, how late it is. For ``status``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings

from access.policy import User, teams_seen_by
from beat.overview import Beats, beats
from executions.api.presentation import time_text
from executions.attendance import attending
from executions.bus.depths import QueueFacts
from executions.models import Execution
from executions.overview import (
    BusyWorker,
    Flow,
    QueueState,
    Teams,
    Unstarted,
    flow,
    present_of,
    queues,
    running,
    unstarted,
    workers,
)
from executions.presence import PresentWorker
from executions.store import default_store
from jobs.overview import queues_in_use
from scheduler_project.dashboard.presentation import (
    beats_json,
    hour_json,
    not_started_json,
    queues_json,
    workers_json,
)
from scheduler_project.kernel.errors import RetryableError
from scheduler_project.operating.obstacles import Obstacle, obstacles

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``beats``, ``queues``, ``own``: None where the part that knows is away. ``away``: which, and its words.

    ``flow`` and ``under_way``: of ``teams``, which the user sees (None: all). ``workers``: with everybody's
    runs; ``known``: whether anybody knows which of them are there. ``own``: the system's queues by name.
    """

    at: datetime
    teams: Teams
    flow: Flow
    under_way: list[Execution]
    unstarted: list[Unstarted]
    obstacles: list[Obstacle]
    workers: list[BusyWorker]
    known: bool
    beats: Beats | None = None
    queues: list[QueueState] | None = None
    own: Mapping[str, QueueFacts] | None = None
    away: Mapping[str, str] = field(default_factory=dict)

    @property
    def present(self) -> list[PresentWorker] | None:
        """The workers that are there."""
        return present_of(self.workers) if self.known else None


def standing(user: User, now: datetime) -> Standing:
    """PostgreSQL has to answer; where Redis or the broker does not, what they know is left out."""
    teams, store, away = teams_seen_by(user), default_store(), dict[str, str]()
    under_way = running(now)
    there = _asked("redis", lambda: workers(store, under_way), away)
    present = None if there is None else present_of(there)
    consumers = _asked("redis", lambda: attending(store), away)
    asked = _asked("broker", lambda: queues(queues_in_use(), present, consumers), away)
    found_beats = _asked("redis", lambda: beats(store, settings.PUNCTUAL_SHARDS), away)
    waiting = unstarted(now, teams)
    return Standing(
        at=now,
        teams=teams,
        flow=flow(now, teams),
        under_way=[run for run in under_way if teams is None or run.owner_id in teams],
        unstarted=waiting,
        obstacles=obstacles(found_beats, present, waiting, now, asked and asked[1]),
        workers=workers(None, under_way) if there is None else there,
        known=there is not None,
        beats=found_beats,
        queues=asked and asked[0],
        own=asked and asked[1],
        away=away,
    )


def _asked(part: str, ask: Callable[[], Found], away: dict[str, str]) -> Found | None:
    try:
        return ask()
    except RetryableError as error:
        away[part] = error.message
        return None


def standing_json(found: Standing) -> dict[str, Any]:
    """As ``GET /api/v1/overview`` has it, of what both say."""
    return {
        "at": time_text(found.at),
        "away": sorted(found.away),
        "hour": hour_json(found.flow, found.unstarted, len(found.under_way)),
        "obstacles": [each.sentence for each in found.obstacles],
        "notStarted": not_started_json(found.unstarted, found.present),
        **beats_json(found.beats),
        "workers": workers_json(found.workers, found.teams, known=found.known),
        **queues_json(found.queues, found.own),
    }
