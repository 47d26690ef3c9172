"""Consuming events in batches: handled as one, acknowledged after they are safe."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.utils import DataError, IntegrityError
from kombu import Connection, Consumer

from executions.bus.connection import BusUnavailable, close_quietly, connect, reachable
from executions.bus.dead_letters import DeadLetters
from executions.bus.refusals import about, refusal
from executions.bus.topology import event_queue
from executions.events import Event, decode
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue, RetryableError

logger = logging.getLogger(__name__)

BATCH_EVENTS = 500
BATCH_S = 0.05
IDLE_S = 1.0
ASK_S = 5.0  # a consumer that hears nothing asks, whether it is still connected
HEARTBEAT_S = 20  # ten times the longest pause between two tries
MOST_REFUSALS = 6
_OF_THE_VALUES = (InvalidValue, DataError, IntegrityError)

Handle = Callable[[list[Event]], None]


class BatchRefused(RetryableError):
    """Messages could not be applied."""


@dataclass(slots=True)
class Delivery:
    """A message in hand, not yet acknowledged; ``refusals``: how often it could not be applied."""

    message: Any
    events: list[Event]
    refusals: int = 0

    def hopeless(self, error: Exception) -> bool:
        """Whether trying again is no use: the values are wrong, or it has been tried often enough."""
        self.refusals += 1
        return isinstance(error, _OF_THE_VALUES) or self.refusals >= MOST_REFUSALS


class BatchConsumer:
    """Takes the events of one queue in batches of up to 500, or what 50 ms bring.

    1. A message that cannot be read is kept on the dead-letter queue, with the reason.
    2. ``handle`` gets the events of a batch; when it returns, all are acknowledged.
    3. When it raises a RetryableError the batch stays in hand, unacknowledged, and the next
       ``run_once`` tries it again: returning it to the queue would use up a delivery limit.
    4. When it raises anything else, the messages are handled one by one, so that what cannot be
       applied stops nobody else. It goes to the dead-letter queue: at once where its values are
       wrong, otherwise after six refusals, since the fault may be ours or a neighbour's and pass.
    """

    def __init__(self, queue: str, handle: Handle) -> None:
        self.queue = queue
        self._handle = handle
        self._connection: Connection | None = None
        self._declare: Any = None
        self._consumer: Consumer | None = None
        self._dead_letters = DeadLetters()
        self._hand: list[Delivery] = []
        self._beaten_at = 0.0
        self._heard_at = 0.0

    def run_once(self) -> float:
        """One batch; the seconds to wait before the next (none: the wait is inside)."""
        try:
            with reachable():
                self._connect()
                self._beat()
                if not self._hand:
                    self._collect()
                if not self._hand:
                    self._ask()
            if self._hand:
                self._work_off()
        except BusUnavailable:
            self.close()
            raise
        return 0.0

    def close(self) -> None:
        """What is in hand returns to the queue; what comes while the connection ends, too: none of it could
        be acknowledged over another one."""
        connection, self._connection, self._consumer = self._connection, None, None
        close_quietly(connection)
        self._hand.clear()
        self._dead_letters.close()

    def _connect(self) -> None:
        if self._consumer is None:
            self._connection = connect(heartbeat_s=HEARTBEAT_S)
            channel = self._connection.channel()
            self._declare = channel.queue_declare  # type: ignore[attr-defined]
            self._consumer = Consumer(
                channel,
                [event_queue(self.queue)],
                on_message=self._take,
                prefetch_count=BATCH_EVENTS,
                accept=["json"],
            )
            self._consumer.consume()
            self._heard_at = monotonic()

    def _beat(self) -> None:
        """Send a heartbeat where it is time, and read the broker's: while a batch waits in hand for the
        database nothing else reads them, and a connection that seems silent is given up."""
        now = monotonic()
        if self._connection is not None and now - self._beaten_at >= 1.0:
            self._beaten_at = now
            if self._hand:
                self._drain(0.001)
            self._connection.heartbeat_check()

    def _ask(self) -> None:
        """Whether the broker still knows the queue: of a dead connection, or of a consumer whose queue is
        gone, one hears nothing either."""
        assert self._connection is not None  # noqa: S101 -- _connect has just made it
        if monotonic() - self._heard_at >= ASK_S:
            # kombu's Redis transport looks for a queue without its key prefix, and so finds none
            self._declare(self.queue, passive=self._connection.transport.driver_type == "amqp")
            self._heard_at = monotonic()

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
        self._heard_at = monotonic()
        return True

    def _take(self, message: Any) -> None:
        try:
            self._hand.append(Delivery(message, decode(message.body)))
        except InvalidValue as error:
            self._bury(message, error.message, {"error": type(error).__name__})

    def _work_off(self) -> None:
        try:
            self._handle([event for item in self._hand for event in item.events])
        except RetryableError:
            raise
        except Exception as error:
            extra = {"queue": self.queue, "messages": len(self._hand)}
            logger.error("batch_refused", extra={**extra, **refusal(error)})
            self._work_off_singly()
        else:
            self._acknowledge_all()

    def _work_off_singly(self) -> None:
        waiting, self._hand = self._hand, []
        while waiting:
            item = waiting.pop(0)
            try:
                self._work_off_one(item)
            except BatchRefused:
                self._hand.append(item)
            except BaseException:
                self._hand += [item, *waiting]
                raise
        if self._hand:
            raise BatchRefused(f"{len(self._hand)} messages of {self.queue} could not be applied yet")

    def _work_off_one(self, item: Delivery) -> None:
        try:
            self._handle(item.events)
        except RetryableError:
            raise
        except Exception as error:
            told = {**about(item.events), **refusal(error)}
            extra = {"queue": self.queue, "refusals": item.refusals + 1, **told}
            logger.error("message_refused", extra=extra)
            if not item.hopeless(error):
                raise BatchRefused from error
            self._bury(item.message, f"{type(error).__name__}: {error}", told)
        else:
            with reachable():
                item.message.ack()

    def _bury(self, message: Any, reason: str, told: dict[str, Any]) -> None:
        """``told``: what the log says of it; the reason, which may quote the message, is the letter's."""
        logger.error("message_buried", extra={"queue": self.queue, **told})
        self._dead_letters.bury(message, queue=self.queue, reason=reason)
        with reachable():
            message.ack()

    def _acknowledge_all(self) -> None:
        assert self._connection is not None  # noqa: S101 -- the items came over it
        with reachable():
            if self._connection.transport.driver_type == "amqp":
                # All up to this one: of many acks a quorum queue may drop the last when the channel ends.
                self._hand[-1].message.ack(multiple=True)
            else:
                for item in self._hand:
                    item.message.ack()
        self._hand = []
