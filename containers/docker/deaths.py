"""One event stream per engine instead of a poll per container.

The stream only wakes whoever waits; what has happened is then read from the container itself.
So a lost event costs time (the waiter's own safety look), never truth.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import requests
from docker.errors import DockerException

from containers.docker.engine import Engine, cut
from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable
from containers.spec import LABEL_MANAGED
from scheduler_project.kernel.backoff import exponential

logger = logging.getLogger(__name__)

FILTERS = {"type": ["container"], "event": ["die", "destroy"], "label": [LABEL_MANAGED]}


class Deaths:
    """Wakes the waiters of containers that have ended, and all of them after a gap in the stream."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiters: dict[str, set[threading.Event]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._stream: Any = None

    def watch(self, container_id: str) -> threading.Event:
        """An event that is set when it is time to look at that container."""
        event = threading.Event()
        with self._lock:
            self._waiters.setdefault(container_id, set()).add(event)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="docker-events", daemon=True)
                self._thread.start()
        return event

    def unwatch(self, container_id: str, event: threading.Event) -> None:
        with self._lock:
            waiting = self._waiters.get(container_id, set())
            waiting.discard(event)
            if not waiting:
                self._waiters.pop(container_id, None)

    def close(self) -> None:
        self._closed.set()
        cut(self._stream)
        if self._thread is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        delays = exponential(cap=5.0)
        while not self._closed.is_set():
            try:
                for event in self._events():
                    delays = exponential(cap=5.0)
                    self._wake([event["id"]])
            except (RuntimeUnavailable, requests.RequestException, DockerException) as error:
                logger.warning("docker_events_interrupted", extra={"error": one_line(str(error))})
            self._closed.wait(next(delays))

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._engine.answering() as api:
            self._stream = api.events(filters=FILTERS, decode=True)
        if self._closed.is_set():
            cut(self._stream)
        with self._lock:
            everybody = list(self._waiters)
        self._wake(everybody)  # whatever ended before the stream began was not in it
        yield from self._stream

    def _wake(self, container_ids: list[str]) -> None:
        with self._lock:
            for container_id in container_ids:
                for event in self._waiters.get(container_id, ()):
                    event.set()
