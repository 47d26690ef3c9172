"""How a batch of runs goes out: the ways behind ``RunPublisher``, one for AMQP and one for other brokers.

    AMQP     frames filled in (frames.py), a thousand messages a write on py-amqp's own connection;
             the confirms are counted (tally.py) whenever something is read
    others   kombu's producer, a message at a time; the broker answers each command

A batch is written first and asked about later, so that the broker works on one while the next is
made. Both ways write the same message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from kombu import Connection, Producer

from executions.bus.connection import BusUnavailable
from executions.bus.frames import Envelope, placeholder
from executions.bus.tally import Tally
from executions.bus.topology import RUNS
from scheduler_project.kernel.clock import monotonic

CONFIRM_TIMEOUT_S = 10.0
MESSAGES_A_WRITE = 1000
BYTES_A_WRITE = 4 * 1024 * 1024
PULSE_S = 1.0
JSON: dict[str, Any] = {"content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2}


class BrokerBlocked(BusUnavailable):
    """The broker takes no messages for now (it is short of memory or disk). The connection is sound."""


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A run on its way to a worker.

    ``body``: the JSON of a Celery protocol-2 message, ``[args, kwargs, embed]``.
    ``queue``: the work queue that it goes to, by name.
    """

    task_id: str
    body: bytes
    queue: str = RUNS


@dataclass(frozen=True, slots=True)
class TaskHeaders:
    """The headers of Celery's message protocol, version 2. ``origin``: who sends it."""

    task: str
    origin: str

    def of(self, task_id: str) -> dict[str, Any]:
        return {
            "lang": "py",
            "task": self.task,
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
            "origin": self.origin,
            "ignore_result": True,
        }


class Sending(Protocol):
    """A batch that is written, and whose fate is not known yet."""

    def refused(self) -> set[int]:
        """The positions of the messages that the broker refused or returned (usually none), when it has
        spoken about all. BrokerBlocked: ask again later. BusUnavailable: that cannot be known.
        """
        ...


class Way(Protocol):
    def pulse(self) -> None:
        """Read what the broker has said meanwhile; keep the connection alive. BusUnavailable: it is not."""

    def write(self, messages: Sequence[RunMessage]) -> Sending: ...


class KombuWay:
    """One message at a time; what was published without an error is there."""

    def __init__(self, channel: Any, headers: TaskHeaders) -> None:
        self._producer = Producer(channel)
        self._headers = headers

    def pulse(self) -> None:
        return

    def write(self, messages: Sequence[RunMessage]) -> Sending:
        for message in messages:
            self._producer.publish(
                message.body,
                exchange="",
                routing_key=message.queue,
                headers=self._headers.of(message.task_id),
                correlation_id=message.task_id,
                mandatory=True,
                **JSON,
            )
        return _Arrived()


class _Arrived:
    def refused(self) -> set[int]:
        return set()


class FramesWay:
    """A thousand messages a write. Not for several threads at once: nobody else may use the connection.

    1. The channel is in confirm mode; single and multiple acks and nacks are counted as they are read.
    2. A message that no queue takes (mandatory) comes back before its ack; it is known by its id.
    3. While the broker says that it blocks the connection, or stops the channel, nothing is written.
    """

    def __init__(self, connection: Connection, channel: Any, headers: TaskHeaders) -> None:
        self._connection = connection
        self._amqp: Any = connection.connection
        self._channel = channel
        self._headers = headers
        self._envelopes: dict[tuple[str, int], Envelope] = {}
        self._tally = Tally()
        self._returned: set[str] = set()
        self._blocked = False
        self._free_since = monotonic()
        self._beaten_at = monotonic()
        self._listen()

    def _listen(self) -> None:
        self._amqp.on_blocked = lambda _reason: self._block(True)
        self._amqp.on_unblocked = lambda: self._block(False)
        self._channel.events["basic_ack"].add(self._tally.acknowledge)
        self._channel.events["basic_nack"].add(self._tally.refuse)
        self._channel.events["basic_return"].add(self._came_back)
        self._channel.confirm_select()

    def pulse(self) -> None:
        self._read_all()
        self._beat()
        if self._stopped:
            raise BrokerBlocked("the broker takes no messages for now: see its alarms (memory, disk)")

    def write(self, messages: Sequence[RunMessage]) -> Sending:
        tags = self._tally.reserve(len(messages))
        for count, data in self._portions(messages):
            self._wait_while_stopped()
            self._amqp.transport.write(memoryview(data))
            self._amqp.bytes_sent += count  # frames, by which py-amqp knows whether a heartbeat is due
            self._read_all()  # what comes back must not fill the way back while we write
        return _Written(self, messages, tags, monotonic())

    def _portions(self, messages: Sequence[RunMessage]) -> Iterator[tuple[int, bytes]]:
        pieces: list[bytes] = []
        count = size = 0
        for message in messages:
            envelope = self._envelopes.get((message.queue, len(message.task_id)))
            envelope = envelope or self._envelope(message.queue, len(message.task_id))
            pieces += envelope.fill(message.task_id.encode(), message.body)
            count, size = count + 1, size + len(message.body)
            if count == MESSAGES_A_WRITE or size >= BYTES_A_WRITE:
                yield count, b"".join(pieces)
                pieces, count, size = [], 0, 0
        if pieces:
            yield count, b"".join(pieces)

    def _envelope(self, queue: str, length: int) -> Envelope:
        """Written by kombu and py-amqp, as they would write a message that is published alone."""
        task_id = placeholder(length)
        properties = {"delivery_mode": JSON["delivery_mode"], "correlation_id": task_id}
        message = self._channel.prepare_message(
            b"", 0, JSON["content_type"], JSON["content_encoding"], self._headers.of(task_id), properties
        )
        made = Envelope(message, queue, length, self._channel.channel_id, self._amqp.frame_max)
        self._envelopes[queue, length] = made
        return made

    def fate(self, messages: Sequence[RunMessage], tags: range, written_at: float) -> set[int]:
        if self._stopped:
            self._read_all()
        while left := self._tally.unsettled(tags):
            if self._stopped:
                raise BrokerBlocked(f"the broker has taken no more messages: {left} of {len(tags)} are open")
            patience_s = max(written_at, self._free_since) + CONFIRM_TIMEOUT_S - monotonic()
            if patience_s <= 0:
                raise BusUnavailable(
                    f"{left} of {len(tags)} runs were not confirmed in {CONFIRM_TIMEOUT_S} s"
                )
            self._read(min(patience_s, PULSE_S))
        lost = {tag - tags.start for tag in self._tally.take_refused(tags)}
        if self._returned:
            lost |= {at for at, message in enumerate(messages) if message.task_id in self._returned}
            self._returned -= {messages[at].task_id for at in lost}
        return lost

    @property
    def _stopped(self) -> bool:
        return self._blocked or not self._channel.active

    def _block(self, blocked: bool) -> None:
        self._blocked = blocked
        self._free_since = monotonic()

    def _came_back(self, *said: Any) -> None:
        self._returned.add(said[-1].properties.get("correlation_id", ""))

    def _wait_while_stopped(self) -> None:
        deadline = monotonic() + CONFIRM_TIMEOUT_S
        while self._stopped:
            if monotonic() >= deadline:
                raise BusUnavailable("the broker blocked the connection in the middle of a batch")
            self._read(PULSE_S)

    def _read(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            self._connection.drain_events(timeout=timeout_s)
        self._beat()

    def _read_all(self) -> None:
        with suppress(TimeoutError):
            while True:
                self._connection.drain_events(timeout=0)

    def _beat(self) -> None:
        now = monotonic()
        if now - self._beaten_at >= PULSE_S:
            self._beaten_at = now
            self._connection.heartbeat_check()


@dataclass(frozen=True, slots=True)
class _Written:
    way: FramesWay
    messages: Sequence[RunMessage]
    tags: range
    at: float

    def refused(self) -> set[int]:
        return self.way.fate(self.messages, self.tags, self.at)
