"""Publishing: events one message at a time, runs in batches (batches.py)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kombu import Connection, Producer, Queue

from executions.bus.batches import (
    JSON,
    BrokerBlocked,
    FramesWay,
    KombuWay,
    RunMessage,
    Sending,
    TaskHeaders,
    Way,
)
from executions.bus.connection import BusUnavailable, close_quietly, connect, drop, reachable
from executions.bus.topology import AUDITOR, EVENTS, HEARTBEAT_S, RECORDER, declare, event_queue, work_queue
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

DECLARE_AGAIN_S = 1.0


class ConfirmedPublisher:
    """Publishes one message at a time; returns when the broker has it safe. Not for several threads at once.

    What it publishes to is declared on connecting, and again when a second has passed: a queue
    that was deleted, or a Redis that has lost its data, would otherwise swallow every message.
    """

    def __init__(self, *queues: Queue) -> None:
        self._queues = queues
        self._producer: Producer | None = None
        self._channel: Any = None
        self.declared_at = 0.0

    def send(self, body: bytes, **options: Any) -> None:
        """BusUnavailable: the message may or may not have arrived."""
        try:
            with reachable():
                self._ready().publish(body, **{**JSON, **options})
        except BusUnavailable:
            self.close()
            raise

    def _ready(self) -> Producer:
        if self._producer is None:
            self._channel = connect(confirm=True).channel()
            self._producer = Producer(self._channel)
            self.declared_at = 0.0
        if monotonic() - self.declared_at >= DECLARE_AGAIN_S:
            for queue in self._queues:
                declare(queue, self._channel)
            self.declared_at = monotonic()
        return self._producer

    def close(self) -> None:
        if self._producer is not None:
            connection = self._producer.connection
            self._producer = None
            close_quietly(connection)


class EventPublisher(ConfirmedPublisher):
    """Publishes events to everybody who listens."""

    def __init__(self) -> None:
        super().__init__(event_queue(RECORDER), event_queue(AUDITOR))

    def publish(self, body: bytes) -> None:
        """``body``: a message of executions/events.py. BusUnavailable: it may or may not have arrived."""
        self.send(body, exchange=EVENTS.name, routing_key="events")


class RunPublisher:
    """Publishes batches of runs as Celery protocol-2 messages. Not for several threads at once.

    A queue is declared once a connection, before the first message for it, and again when one came back.
    """

    def __init__(self, task: str, origin: str) -> None:
        self._headers = TaskHeaders(task, origin)
        self._connection: Connection | None = None
        self._way: Way | None = None
        self._declared: set[str] = set()

    def prepare(self) -> None:
        """Connect, or look after the connection; once a second or so, or the broker may hang up.

        BusUnavailable: nothing can be published now. BrokerBlocked: nor, but what was sent may yet arrive.
        """
        with self._sound():
            self._ready().pulse()

    def send(self, messages: Sequence[RunMessage]) -> Sending:
        """Write all, and wait for nothing. BusUnavailable: none of them may be taken as sent."""
        with self._sound():
            way = self._ready()
            self._declare({message.queue for message in messages})
            return _Sent(self, messages, way, way.write(messages))

    def publish(self, messages: Sequence[RunMessage]) -> set[int]:
        """``send``, and wait: the positions of those that the broker refused or returned (usually none)."""
        return self.send(messages).refused()

    def fate(self, messages: Sequence[RunMessage], way: Way, sending: Sending) -> set[int]:
        if way is not self._way:
            raise BusUnavailable(f"the connection is gone over which {len(messages)} runs went out")
        with self._sound():
            lost = sending.refused()
        self._declared -= {messages[at].queue for at in lost}
        return lost

    def _ready(self) -> Way:
        if self._way is None:
            self._connection = connect(heartbeat_s=HEARTBEAT_S)
            channel = self._connection.channel()
            amqp = self._connection.transport.driver_type == "amqp"
            self._declared = set()
            self._way = (
                FramesWay(self._connection, channel, self._headers)
                if amqp
                else KombuWay(channel, self._headers)
            )
        return self._way

    def _declare(self, queues: set[str]) -> None:
        """On a channel of its own: what the broker refuses here must not end the others' channel."""
        assert self._connection is not None  # noqa: S101 -- _ready has just made it
        for name in sorted(queues - self._declared):
            try:
                with self._connection.channel() as channel:
                    declare(work_queue(name), channel)
            except self._connection.channel_errors as error:
                # One that is there with other arguments takes messages all the same; without one they return.
                logger.warning("queue_not_declared", extra={"queue": name, "error": str(error)})
            self._declared.add(name)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """A connection that fails is dropped without a farewell: its last frame may be half written, and
        after any other failure nobody knows how many messages it has numbered."""
        try:
            with reachable():
                yield
        except BrokerBlocked:
            raise
        except Exception:
            drop(self._forget())
            raise

    def close(self) -> None:
        close_quietly(self._forget())

    def _forget(self) -> Connection | None:
        connection, self._connection, self._way = self._connection, None, None
        return connection


@dataclass(frozen=True, slots=True)
class _Sent:
    publisher: RunPublisher
    messages: Sequence[RunMessage]
    way: Way
    sending: Sending

    def refused(self) -> set[int]:
        return self.publisher.fate(self.messages, self.way, self.sending)
