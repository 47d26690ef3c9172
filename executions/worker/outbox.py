"""The worker's outbox: events wait here until the broker has them safe."""

from __future__ import annotations

import logging
import queue
import threading
from concurrent.futures import Future, wait

from executions.bus.connection import BusUnavailable
from executions.bus.publishing import EventPublisher
from executions.events import Event, encode
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

MOST_EVENTS = 100
LOOK_S = 0.2


class EventsHeld(RetryableError):
    """The broker is away, and this worker is going to end."""


class Outbox:
    """One thread that publishes; whatever has come meanwhile goes in one message.

    While the broker is away the events are held and tried again with growing pauses, until
    ``stopping`` is set and ``patience_s`` more seconds have passed. Nobody else has them: a
    worker that ends with events held has its runs taken up by another.
    """

    def __init__(self, stopping: threading.Event, patience_s: float = 3.0) -> None:
        self._stopping = stopping
        self._patience_s = patience_s
        self._waiting: queue.SimpleQueue[tuple[Event, Future[None]] | None] = queue.SimpleQueue()
        self._publisher = EventPublisher()
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> Future[None]:
        """Hand over an event; the future is done when the broker has it safe."""
        done: Future[None] = Future()
        self._waiting.put((event, done))
        return done

    def send(self, event: Event) -> None:
        """Hand over an event and wait until the broker has it safe, as long as it takes.

        EventsHeld: this worker is going to end, and whether the event still arrives is unknown.
        """
        done = self.put(event)
        give_up: float | None = None
        while not _is_done(done, LOOK_S):
            if give_up is None and self._stopping.is_set():
                give_up = monotonic() + self._patience_s
            if give_up is not None and monotonic() >= give_up and not _is_done(done, 0.0):
                done.cancel()
                raise EventsHeld

    def close(self, timeout_s: float) -> bool:
        """Publish what is held, for up to ``timeout_s`` seconds; whether all of it went out."""
        self._waiting.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            batch = [item for item in batch if item[1].set_running_or_notify_cancel()]
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


def _is_done(done: Future[None], timeout_s: float) -> bool:
    return bool(wait([done], timeout_s).done)
