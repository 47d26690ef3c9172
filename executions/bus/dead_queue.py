"""The queue of dead letters, looked through: what is there, and what becomes of chosen ones.

Nothing that is only looked at may be lost, however often. RabbitMQ shows a message only to somebody who takes
it, counts how often it was given back, and drops it beyond the queue's delivery limit: one that has come near
the smallest that is usual is written anew, confirmed, before the old one goes. On Redis the list is read
where it lies, and nothing is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from kombu import Connection, Producer

from executions.bus.connection import broker_errors, close_quietly, connect, reachable
from executions.bus.dead_letters import COUNTED_RETURNS, Letter, letter_of
from executions.bus.depths import facts_of
from executions.bus.topology import DEAD, dead_letter_queue
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import PermanentError

STEP_S = 2.0
"""For one answer of the broker."""
WITHIN_S = 4.0
"""For all that is read at once."""
RETURNS_BORNE = 10  # RabbitMQ 4 drops a message after 20, where nothing else is said
_ACKS_IN_FLIGHT = 16  # of more than 32 RabbitMQ keeps some back, and forgets these when the channel ends


class NotReplayable(PermanentError):
    """It cannot be put back where it came from."""


@dataclass(frozen=True, slots=True)
class Held:
    """A letter, and by what the broker knows it."""

    letter: Letter
    handle: Any


class _Shelf(Protocol):
    def take(self, most: int, until: float) -> list[Held]:
        """At most ``most``, the oldest first; no more after ``until``, by the monotonic clock."""

    def remove(self, held: Held) -> None: ...

    def put_back(self) -> None:
        """All that was taken and not removed."""


@dataclass(slots=True)
class DeadQueue:
    """``held``: the oldest letters. ``more``: there are others behind them."""

    held: Sequence[Held]
    more: bool
    _connection: Connection
    _shelf: _Shelf
    _known: dict[str, bool] = field(default_factory=dict)

    @property
    def letters(self) -> list[Letter]:
        return [held.letter for held in self.held]

    def replay(self, held: Held) -> None:
        """Put it back on the queue that it came from, as it was. NotReplayable: there is none.

        BusUnavailable: it may have arrived there, and is here still.
        """
        letter = held.letter
        if not letter.queue:
            raise NotReplayable("It does not say which queue it came from.")
        with reachable():
            if not self._exists(letter.queue):
                raise NotReplayable(f"The queue {letter.queue!r}, which it came from, is not there any more.")
            _publish(self._connection, letter, letter.queue, letter.sent_headers)
            self._shelf.remove(held)

    def discard(self, held: Held) -> None:
        with reachable():
            self._shelf.remove(held)

    def _exists(self, queue: str) -> bool:
        if queue not in self._known:
            self._known[queue] = facts_of(self._connection, queue).exists
        return self._known[queue]


@contextmanager
def dead_queue(most: int, within_s: float = WITHIN_S) -> Iterator[DeadQueue]:
    """Up to ``most`` dead letters, in hand until the end; others see none of these in the meantime.

    ``within_s``: where that does not suffice for all, there are fewer, and ``more`` is true. BusUnavailable.
    """
    connection = connect(confirm=True, within_s=STEP_S)
    try:
        with reachable():
            until = monotonic() + within_s
            amqp = connection.transport.driver_type == "amqp"
            shelf: _Shelf = _Amqp(connection) if amqp else _Redis(connection.channel())
            found = shelf.take(most + 1, until)
        more = len(found) > most or monotonic() >= until
        yield DeadQueue(found[:most], more, connection, shelf)
        with suppress(*broker_errors()):  # what it has not taken back it takes when the connection ends
            shelf.put_back()
    finally:
        close_quietly(connection)


class _Amqp:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel: Any = connection.channel()
        self._queue: Any = dead_letter_queue().bind(self._channel)
        self._taken: list[Any] = []
        self._acks = 0

    def take(self, most: int, until: float) -> list[Held]:
        if not facts_of(self._connection, DEAD).exists:
            return []
        found: list[Held] = []
        while len(found) < most and monotonic() < until and (message := self._get()) is not None:
            found.append(Held(letter_of(message), message))
        return found

    def _get(self) -> Any:
        message = self._queue.get(accept=None)
        if message is not None:
            self._taken.append(message)
        return message

    def remove(self, held: Held) -> None:
        held.handle.ack()
        self._acks += 1
        if self._acks % _ACKS_IN_FLIGHT == 0:
            self._get()  # is answered behind all these

    def put_back(self) -> None:
        for message in self._taken:
            if message.acknowledged:
                continue
            if int((message.headers or {}).get(COUNTED_RETURNS, 0)) >= RETURNS_BORNE:
                letter = letter_of(message)
                headers = {name: value for name, value in letter.headers.items() if name != COUNTED_RETURNS}
                _publish(self._connection, letter, DEAD, headers)
                self.remove(Held(letter, message))
            else:
                message.requeue()


class _Redis:
    """kombu takes messages from the right end of a list, and puts them to its left."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._key = f"{self._channel.global_keyprefix}{DEAD}"

    def take(self, most: int, until: float) -> list[Held]:
        return [
            Held(self._read(raw), raw) for raw in reversed(self._channel.client.lrange(self._key, -most, -1))
        ]

    def _read(self, raw: bytes) -> Letter:
        try:
            return letter_of(self._channel.message_to_python(json.loads(raw)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return Letter(raw)

    def remove(self, held: Held) -> None:
        self._channel.client.lrem(self._key, -1, held.handle)

    def put_back(self) -> None:
        return


def _publish(connection: Connection, letter: Letter, queue: str, headers: dict[str, Any]) -> None:
    with connection.channel() as channel:
        Producer(channel).publish(
            letter.body,
            exchange="",
            routing_key=queue,
            headers=headers,
            delivery_mode=2,
            mandatory=True,
            **letter.content,
        )
