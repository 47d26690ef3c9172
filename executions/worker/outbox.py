"""The worker's outbox: events wait here until the broker has them safe."""

from __future__ import annotations

import logging
import queue
import threading
from concurrent.futures import Future

from executions.bus.connection import BusUnavailable
from executions.bus.publishing import EventPublisher
from executions.events import Event, encode
from scheduler_project.kernel.backoff import exponential

logger = logging.getLogger(__name__)

MOST_EVENTS = 100


class Outbox:
    """One thread that publishes; whatever has come meanwhile goes in one message.

    While the broker is away the events are held and tried again with growing pauses. Nobody
    else has them: a worker that ends with events held has its runs taken up by another.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Event, Future[None]] | None] = queue.SimpleQueue()
        self._publisher = EventPublisher()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> Future[None]:
        """Hand over an event; the future is done when the broker has it safe."""
        done: Future[None] = Future()
        self._waiting.put((event, done))
        return done

    def send(self, event: Event) -> None:
        """Hand over an event and wait, as long as it takes, until the broker has it safe."""
        self.put(event).result()

    def close(self, timeout_s: float) -> bool:
        """Publish what is held, for up to ``timeout_s`` seconds; whether all of it went out."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            self._publish([event for event, _ in batch])
            for _, done in batch:
                done.set_result(None)
        self._publisher.close()

    def _take(self) -> list[tuple[Event, Future[None]]] | None:
        first = self._waiting.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < MOST_EVENTS and not self._waiting.empty():
            item = self._waiting.get()
            if item is None:
                self._waiting.put(None)
                break
            batch.append(item)
        return batch

    def _publish(self, events: list[Event]) -> None:
        body = encode(events)
        for delay in exponential(first=0.1, cap=5.0):
            try:
                self._publisher.publish(body)
            except BusUnavailable as error:
                logger.warning("events_held", extra={"events": len(events), "error": error.message})
                threading.Event().wait(delay)
            else:
                return
