"""How much waits in a queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kombu import Connection

from executions.bus.connection import connect, reachable


def messages_waiting(queues: Iterable[str]) -> int:
    """How many messages wait in ``queues``, altogether; deliveries in somebody's hands do not count."""
    with reachable(), connect() as connection:
        return sum(_waiting(connection, name) for name in queues)


def _waiting(connection: Connection, queue: str) -> int:
    try:
        with connection.channel() as channel:
            declare: Any = channel.queue_declare  # type: ignore[attr-defined]
            # kombu's Redis transport looks for a queue without its key prefix, and so finds none
            passive = connection.transport.driver_type == "amqp"
            return int(declare(queue, passive=passive).message_count)
    except connection.channel_errors:  # there is no such queue
        return 0
