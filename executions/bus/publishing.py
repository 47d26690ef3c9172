"""Publishing: events one message at a time, runs in batches with the confirms counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kombu import Connection, Producer, Queue

from executions.bus.connection import BusUnavailable, close_quietly, connect, reachable
from executions.bus.topology import AUDITOR, EVENTS, RECORDER, declare, event_queue, work_queue
from scheduler_project.kernel.clock import monotonic

CONFIRM_TIMEOUT_S = 10.0
DECLARE_AGAIN_S = 1.0
_JSON: dict[str, Any] = {"content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2}


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
                self._ready().publish(body, **{**_JSON, **options})
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


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A run on its way to a worker. ``arguments``: what the task ``executions.run`` is called with."""

    task_id: str
    arguments: dict[str, Any]


class RunPublisher:
    """Publishes batches of runs as Celery protocol-2 messages, and counts what the broker confirms."""

    def __init__(self, task: str, queue: str, origin: str) -> None:
        self._task = task
        self._queue = work_queue(queue)
        self._origin = origin
        self._connection: Connection | None = None
        self._producer: Producer | None = None
        self._confirms: _Confirms | None = None

    def publish(self, messages: Sequence[RunMessage]) -> set[int]:
        """Publish all; the positions of those that the broker refused or returned (usually none).

        BusUnavailable where that cannot be known: none of them may then be taken as sent.
        """
        try:
            with reachable():
                producer, confirms = self._ready()
                confirms.begin(len(messages))
                for message in messages:
                    self._send(producer, message)
                lost = confirms.wait(CONFIRM_TIMEOUT_S)
        except BusUnavailable:
            self.close()
            raise
        if lost:
            self.close()  # a queue that has gone is declared anew by the next connection
        return lost

    def _send(self, producer: Producer, message: RunMessage) -> None:
        producer.publish(
            json.dumps([[], message.arguments, _EMBED], separators=(",", ":")),
            exchange="",
            routing_key=self._queue.name,
            headers=self._headers(message.task_id),
            correlation_id=message.task_id,
            mandatory=True,
            **_JSON,
        )

    def _headers(self, task_id: str) -> dict[str, Any]:
        """The headers of Celery's message protocol, version 2."""
        return {
            "lang": "py",
            "task": self._task,
            "id": task_id,
            "root_id": task_id,
            "parent_id": None,
            "group": None,
            "retries": 0,
            "eta": None,
            "expires": None,
            "timelimit": [None, None],
            "argsrepr": "()",
            "kwargsrepr": "{}",
            "origin": self._origin,
            "ignore_result": True,
        }

    def _ready(self) -> tuple[Producer, _Confirms]:
        if self._producer is None or self._confirms is None:
            self._connection = connect()
            channel = self._connection.channel()
            declare(self._queue, channel)
            self._producer = Producer(channel)
            amqp = self._connection.transport.driver_type == "amqp"
            self._confirms = _AmqpConfirms(self._connection, channel) if amqp else _Answered()
        return self._producer, self._confirms

    def close(self) -> None:
        connection, self._connection, self._producer, self._confirms = self._connection, None, None, None
        close_quietly(connection)


_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class _Confirms(Protocol):
    def begin(self, count: int) -> None:
        """A new batch of ``count`` messages starts."""

    def wait(self, timeout_s: float) -> set[int]:
        """Wait for the fate of the whole batch; the numbers (from 0) of the messages that were lost."""
        ...


class _Answered:
    """Redis answers each command, so what was published without an error is there."""

    def begin(self, count: int) -> None:
        return

    def wait(self, timeout_s: float) -> set[int]:
        return set()


class _AmqpConfirms:
    """Counts publisher confirms on one channel: single and multiple acks, nacks, and returns.

    A returned message (mandatory, no queue) is acknowledged as well; the return comes first.
    """

    def __init__(self, connection: Connection, channel: Any) -> None:
        self._connection = connection
        self._first = 1
        self._count = 0
        self._open: set[int] = set()
        self._lost: set[int] = set()
        self._returned = 0
        channel.confirm_select()
        channel.events["basic_ack"].add(self._acknowledged)
        channel.events["basic_nack"].add(self._refused)
        channel.events["basic_return"].add(self._came_back)

    def begin(self, count: int) -> None:
        """Before the first message goes out: py-amqp reads what has come, acks too, while it publishes."""
        self._first, self._count = self._first + self._count, count
        self._open = set(range(self._first, self._first + count))
        self._lost = set()
        self._returned = 0

    def wait(self, timeout_s: float) -> set[int]:
        deadline = monotonic() + timeout_s
        while self._open:
            left = deadline - monotonic()
            if left <= 0:
                raise BusUnavailable(
                    f"{len(self._open)} of {self._count} runs were not confirmed in {timeout_s} s"
                )
            self._connection.drain_events(timeout=left)
        if self._returned:
            return set(range(self._count))
        return {tag - self._first for tag in self._lost}

    def _acknowledged(self, delivery_tag: int, multiple: bool) -> None:
        self._settle(delivery_tag, multiple)

    def _refused(self, delivery_tag: int, multiple: bool) -> None:
        self._lost |= self._settle(delivery_tag, multiple)

    def _settle(self, delivery_tag: int, multiple: bool) -> set[int]:
        tags = {tag for tag in self._open if tag <= delivery_tag} if multiple else {delivery_tag}
        self._open -= tags
        return tags

    def _came_back(self, *_: Any) -> None:
        self._returned += 1
