"""Dead letters: messages that nobody could read or apply, kept until a person has decided.

Each keeps its body and its headers, and says in further headers which queue it came from
(``queue``), why it is here (``reason``) and since when (``buried_at``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from executions.bus.publishing import ConfirmedPublisher
from executions.bus.topology import dead_letter_queue
from scheduler_project.kernel.clock import utcnow

_OWN_HEADERS = ("queue", "reason", "buried_at")
COUNTED_RETURNS = "x-delivery-count"
_HEADERS_OF_BROKERS = (COUNTED_RETURNS, "x-acquired-count")
_LONGEST_REASON = 2000
_LONGEST_NAME = 255  # of a queue, in bytes: AMQP has no longer ones


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
        letter = letter_of(message)
        self.send(
            letter.body,
            exchange=target.exchange.name,
            routing_key=target.routing_key,
            headers=headers,
            **letter.content,
        )


@dataclass(frozen=True, slots=True)
class Letter:
    """What was written. ``content``: its type and encoding, so that it is read, or refused, as before."""

    body: bytes
    headers: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """By what it says, so that it has the same one however often it is looked at."""
        said = json.dumps(self._said(), sort_keys=True, default=str)
        return blake2b(said.encode(errors="replace") + b"\0" + self.body, digest_size=16).hexdigest()

    @property
    def queue(self) -> str:
        """The queue it came from; empty where it does not say."""
        named = self.headers.get("queue", "")
        sound = isinstance(named, str) and 0 < len(named.encode(errors="replace")) <= _LONGEST_NAME
        return named if sound else ""

    @property
    def reason(self) -> str:
        return str(self.headers.get("reason", ""))

    @property
    def buried_at(self) -> str:
        return str(self.headers.get("buried_at", ""))

    @property
    def since(self) -> datetime | None:
        """``buried_at``; None where it is no instant."""
        try:
            found = datetime.fromisoformat(self.buried_at)
        except ValueError:
            return None
        return None if found.tzinfo is None else found

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def sent_headers(self) -> dict[str, Any]:
        """Those that it came with to its queue."""
        return {name: value for name, value in self._said().items() if name not in _OWN_HEADERS}

    def _said(self) -> dict[str, Any]:
        return {name: value for name, value in self.headers.items() if name not in _HEADERS_OF_BROKERS}


def letter_of(message: Any) -> Letter:
    """A kombu message, as it was written."""
    body = message.body if isinstance(message.body, bytes) else str(message.body).encode(errors="replace")
    content = {
        "content_type": message.content_type or "application/octet-stream",
        "content_encoding": message.content_encoding or "binary",
    }
    return Letter(body, dict(message.headers or {}), content)
