"""What keeps runs from starting, in sentences: for the dashboard and ``status`` (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from beat.overview import Beats
from executions.bus.depths import QueueFacts
from executions.bus.topology import AUDITOR, RECORDER
from executions.overview import Unstarted
from executions.presence import PresentWorker
from scheduler_project.kernel.durations import format_duration
from scheduler_project.operating.words import counted

WAITS_LONG = timedelta(seconds=30)
UNRECORDED = (
    (RECORDER, "No recorder is running: states stay, no retry and no next run is made;", True),
    (AUDITOR, "No auditor is running: the history stays as it is;", False),
)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """``stops``: nothing starts there, until somebody does something; otherwise it may pass."""

    sentence: str
    stops: bool


def obstacles(
    beats: Beats | None,
    present: Collection[PresentWorker] | None,
    waiting: Collection[Unstarted],
    now: datetime,
    own: Mapping[str, QueueFacts] | None,
) -> list[Obstacle]:
    """The worst first. ``own``: the system's own queues. None for ``beats``, ``present`` or ``own``: nobody
    knows, and nothing is said of them.
    """
    of_workers = [] if present is None else _of_workers(present, waiting, now)
    return [*_of_beats(beats), *_of_consumers(own or {}), *of_workers]


def _of_beats(beats: Beats | None) -> Iterator[Obstacle]:
    if beats is None:
        return
    if not beats.shards:
        yield Obstacle("No beat is alive: nothing that is due is sent.", stops=True)
    elif beats.unowned:
        numbers = ", ".join(map(str, beats.unowned))
        yield Obstacle(f"No beat owns the shards {numbers}: what is due there is not sent.", stops=False)


def _of_consumers(own: Mapping[str, QueueFacts]) -> Iterator[Obstacle]:
    for queue, sentence, stops in UNRECORDED:
        if queue in own and own[queue].consumers == 0:
            yield Obstacle(f"{sentence} {counted(own[queue].messages, 'message')} waiting.", stops)


def _of_workers(
    present: Collection[PresentWorker], waiting: Collection[Unstarted], now: datetime
) -> Iterator[Obstacle]:
    if not present:
        yield Obstacle("No worker is alive: nothing starts.", stops=True)
        return
    for item in waiting:
        listening = [worker for worker in present if item.queue in worker.queues]
        told = f"{counted(item.runs, 'run')} for the queue {item.queue!r}"
        if not listening:
            yield Obstacle(f"{told} cannot start: no worker takes from it.", stops=True)
        elif item.since is not None and now - item.since > WAITS_LONG:
            length = format_duration((now - item.since) // _SECOND * _SECOND)
            why = _why(listening)
            yield Obstacle(f"{told} should have begun, the first {length} ago: {why}.", stops=False)


def _why(listening: Collection[PresentWorker]) -> str:
    if all(worker.full for worker in listening):
        return "all slots of its workers are taken"
    return "they have not been sent, or its workers do not take them"
