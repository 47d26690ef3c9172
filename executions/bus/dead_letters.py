"""Dead letters: messages that nobody could read or apply, kept until a person has decided.

Each keeps its body and its headers, and says in further headers which queue it came from
(``queue``), why it is here (``reason``) and since when (``buried_at``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from executions.bus.connection import connect, reachable
from executions.bus.publishing import ConfirmedPublisher
from executions.bus.topology import dead_letter_queue
from scheduler_project.kernel.clock import utcnow

_OWN_HEADERS = ("queue", "reason", "buried_at")
_LONGEST_REASON = 2000


class DeadLetters(ConfirmedPublisher):
    """Where one process buries what it cannot read or apply. Not for several threads at once."""

    def __init__(self) -> None:
        super().__init__(dead_letter_queue())

    def bury(self, message: Any, *, queue: str, reason: str) -> None:
        """Keep a kombu message that came over ``queue``; the caller acknowledges it afterwards."""
        headers = {
            **(message.headers or {}),
            "queue": queue,
            "reason": reason[:_LONGEST_REASON],
            "buried_at": utcnow().isoformat(),
        }
        target = dead_letter_queue()
        self.send(
            _body(message),
            exchange=target.exchange.name,
            routing_key=target.routing_key,
            headers=headers,
            **_content(message),
        )


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One of them, still on the queue until ``replay`` or ``discard``; otherwise it goes back."""

    message: Any
    publisher: ConfirmedPublisher

    @property
    def queue(self) -> str:
        """The queue it came from; empty where it does not say."""
        return str(self.message.headers.get("queue", ""))

    @property
    def reason(self) -> str:
        return str(self.message.headers.get("reason", ""))

    @property
    def buried_at(self) -> str:
        return str(self.message.headers.get("buried_at", ""))

    @property
    def body(self) -> str:
        return _body(self.message).decode(errors="replace")

    def replay(self) -> None:
        """Put it back on the queue that it came from, as it was."""
        headers = {name: value for name, value in self.message.headers.items() if name not in _OWN_HEADERS}
        self.publisher.send(
            _body(self.message),
            exchange="",
            routing_key=self.queue,
            headers=headers,
            mandatory=True,
            **_content(self.message),
        )
        self.discard()

    def discard(self) -> None:
        with reachable():
            self.message.ack()


@contextmanager
def dead_letters(most: int) -> Iterator[list[DeadLetter]]:
    """Up to ``most`` dead letters, oldest first; those that nobody has settled go back at the end."""
    publisher = ConfirmedPublisher()
    with reachable(), connect() as connection, connection.channel() as channel:
        queue = dead_letter_queue().bind(channel)
        queue.declare()
        found: list[DeadLetter] = []
        while len(found) < most and (message := queue.get(accept=None)) is not None:
            found.append(DeadLetter(message, publisher))
        try:
            yield found
        finally:
            for letter in found:
                if not letter.message.acknowledged:
                    letter.message.requeue()
            publisher.close()


def _body(message: Any) -> bytes:
    return message.body if isinstance(message.body, bytes) else str(message.body).encode()


def _content(message: Any) -> dict[str, Any]:
    """Its content type, so that it is read, or refused, as before."""
    return {
        "content_type": message.content_type or "application/octet-stream",
        "content_encoding": message.content_encoding or "binary",
    }
