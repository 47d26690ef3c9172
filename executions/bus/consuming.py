"""Consuming events in batches: handled as one, acknowledged after they are safe."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kombu import Connection, Consumer

from executions.bus.connection import BusUnavailable, close_quietly, connect, reachable
from executions.bus.publishing import EventPublisher
from executions.bus.topology import event_queue
from executions.events import Event, decode
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue, RetryableError

logger = logging.getLogger(__name__)

BATCH_EVENTS = 500
BATCH_S = 0.05
IDLE_S = 1.0
HEARTBEAT_S = 10


@dataclass(slots=True)
class Delivery:
    """A message in hand, not yet acknowledged."""

    message: Any
    events: list[Event]


Handle = Callable[[list[Event]], None]


class BatchConsumer:
    """Takes the events of one queue in batches of up to 500, or what 50 ms bring.

    1. A message that cannot be read is kept on the dead-letter queue, with the reason.
    2. ``handle`` gets the events of a batch; when it returns, all are acknowledged.
    3. When it raises a RetryableError the batch stays in hand, unacknowledged, and the next
       ``run_once`` tries it again: returning it to the queue would use up a delivery limit.
    4. When it raises anything else, the messages are handled one by one, and what cannot be
       applied goes to the dead-letter queue: it stops nobody else.
    """

    def __init__(self, queue: str, handle: Handle) -> None:
        self._queue = queue
        self._handle = handle
        self._connection: Connection | None = None
        self._consumer: Consumer | None = None
        self._dead_letters = EventPublisher()
        self._hand: list[Delivery] = []
        self._beaten_at = 0.0

    def run_once(self) -> float:
        """One batch; the seconds to wait before the next (none: the wait is inside)."""
        try:
            with reachable():
                self._connect()
                self._beat()
                if not self._hand:
                    self._collect()
            if self._hand:
                self._work_off()
        except BusUnavailable:
            self.close()
            raise
        return 0.0

    def close(self) -> None:
        """Let go: what is in hand returns to the queue."""
        connection, self._connection, self._consumer = self._connection, None, None
        self._hand.clear()
        close_quietly(connection)
        self._dead_letters.close()

    def _connect(self) -> None:
        if self._consumer is None:
            self._connection = connect(heartbeat_s=HEARTBEAT_S)
            channel = self._connection.channel()
            self._consumer = Consumer(
                channel,
                [event_queue(self._queue)],
                on_message=self._take,
                prefetch_count=BATCH_EVENTS,
                accept=["json"],
            )
            self._consumer.consume()

    def _beat(self) -> None:
        now = monotonic()
        if self._connection is not None and now - self._beaten_at >= 1.0:
            self._beaten_at = now
            self._connection.heartbeat_check()

    def _collect(self) -> None:
        self._drain(IDLE_S)
        deadline = monotonic() + BATCH_S
        while self._hand and sum(len(item.events) for item in self._hand) < BATCH_EVENTS:
            left = deadline - monotonic()
            if left <= 0 or not self._drain(left):
                return

    def _drain(self, timeout_s: float) -> bool:
        assert self._connection is not None  # noqa: S101 -- _connect has just made it
        try:
            self._connection.drain_events(timeout=timeout_s)
        except TimeoutError:
            return False
        return True

    def _take(self, message: Any) -> None:
        try:
            self._hand.append(Delivery(message, decode(message.body)))
        except InvalidValue as error:
            self._bury(message, error.message)

    def _work_off(self) -> None:
        try:
            self._handle([event for item in self._hand for event in item.events])
        except RetryableError:
            raise
        except Exception:
            logger.exception("batch_refused", extra={"queue": self._queue, "messages": len(self._hand)})
            self._work_off_singly()
        else:
            self._acknowledge(self._hand)
        self._hand = []

    def _work_off_singly(self) -> None:
        while self._hand:
            item = self._hand[0]
            try:
                self._handle(item.events)
            except RetryableError:
                raise
            except Exception as error:
                logger.exception("message_refused", extra={"queue": self._queue})
                self._bury(item.message, f"{type(error).__name__}: {error}")
            else:
                self._acknowledge([item])
            self._hand.pop(0)

    def _bury(self, message: Any, reason: str) -> None:
        body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
        logger.error("message_buried", extra={"queue": self._queue, "reason": reason})
        self._dead_letters.bury(body, f"{self._queue}: {reason}")
        with reachable():
            message.ack()

    def _acknowledge(self, items: list[Delivery]) -> None:
        assert self._connection is not None  # noqa: S101 -- the items came over it
        with reachable():
            if self._connection.transport.driver_type == "amqp":
                # All up to this one: of many acks a quorum queue may drop the last when the channel ends.
                items[-1].message.ack(multiple=True)
                return
            for item in items:
                item.message.ack()
