"""One event stream per engine, and one look at all that runs, instead of a poll per container.

Both only wake whoever waits; what has happened is then read from the container itself. So an
event that is lost costs time (until the next look), never truth.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import requests
from docker.errors import DockerException

from containers.docker.engine import APIError, Engine, cut
from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable
from containers.spec import LABEL_MANAGED
from scheduler_project.kernel.backoff import exponential

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
ENDS_WITHIN_S = 1.0  # a thread may be asking an engine that is silent
FILTERS = {"type": ["container"], "event": ["die", "destroy", "kill"], "label": [LABEL_MANAGED]}
STOPPING = {str(int(number)) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM)}


def stops(kill: Mapping[str, Any]) -> bool:
    """Whether the signal of a kill event is one that is to end the container."""
    return kill["Actor"]["Attributes"].get("signal") in STOPPING


@dataclass(slots=True, eq=False)
class Watch:
    """What has been seen of one container. ``wake``: it is time to look at it.

    ``died``: its end was in the stream. ``stopped``: it was sent a signal that ends it, by whomever.
    ``interrupted``: the stream has not always been there, so that more may have happened.
    """

    wake: threading.Event = field(default_factory=threading.Event)
    died: bool = False
    stopped: bool = False
    interrupted: bool = False

    def take(self, event: Mapping[str, Any]) -> None:
        if event["Action"] == "kill":
            self.stopped |= stops(event)
            return
        self.died |= event["Action"] == "die"
        self.wake.set()


class Deaths:
    """Wakes the waiters of containers that have ended, and all of them after a gap in the stream."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiters: dict[str, set[Watch]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._stream: Any = None

    def watch(self, container_id: str) -> Watch:
        watch = Watch()
        with self._lock:
            self._waiters.setdefault(container_id, set()).add(watch)
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._run, name="docker-events", daemon=True),
                    threading.Thread(target=self._look, name="docker-looks", daemon=True),
                ]
                for thread in self._threads:
                    thread.start()
        return watch

    def unwatch(self, container_id: str, watch: Watch) -> None:
        with self._lock:
            waiting = self._waiters.get(container_id, set())
            waiting.discard(watch)
            if not waiting:
                self._waiters.pop(container_id, None)

    def close(self) -> None:
        self._closed.set()
        cut(self._stream)
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)

    def _run(self) -> None:
        delays = exponential(cap=5.0)
        while not self._closed.is_set():
            try:
                for event in self._events():
                    delays = exponential(cap=5.0)
                    self._tell(event)
            except (RuntimeUnavailable, requests.RequestException, DockerException) as error:
                logger.warning("docker_events_interrupted", extra={"error": one_line(str(error))})
            self._miss()
            self._closed.wait(next(delays))

    def _look(self) -> None:
        """The safety net: wakes whoever waits for what does not run, however few events arrive."""
        while not self._closed.wait(LOOK_EVERY_S):
            with self._lock:
                waited_for = set(self._waiters)
            if waited_for:
                with suppress(RuntimeUnavailable, APIError):  # the other thread says so
                    self._wake(waited_for - self._running())

    def _running(self) -> set[str]:
        with self._engine.answering() as api:
            found = api.containers(filters={"status": "running", "label": LABEL_MANAGED})
        return {str(container["Id"]) for container in found}

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._engine.answering() as api:
            self._stream = api.events(filters=FILTERS, decode=True)
        if self._closed.is_set():
            cut(self._stream)
        with self._lock:
            everybody = list(self._waiters)
        self._wake(everybody)  # whatever ended before the stream began was not in it
        yield from self._stream

    def _tell(self, event: Mapping[str, Any]) -> None:
        with self._lock:
            for watch in self._waiters.get(event["id"], ()):
                watch.take(event)

    def _miss(self) -> None:
        with self._lock:
            for watches in self._waiters.values():
                for watch in watches:
                    watch.interrupted = True

    def _wake(self, container_ids: Iterable[str]) -> None:
        with self._lock:
            for container_id in container_ids:
                for watch in self._waiters.get(container_id, ()):
                    watch.wake.set()
