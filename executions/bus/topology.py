"""Exchanges and queues by name; who declares them declares all of them alike.

Queues are durable quorum queues on RabbitMQ; on Redis kombu ignores the arguments. The
delivery limit is out of reach on purpose: RabbitMQ 4 drops a message after 20 returns,
which a long outage of the database would use up.
"""

from __future__ import annotations

from typing import Any

from kombu import Exchange, Queue
from kombu.transport.virtual import Channel as VirtualChannel

RUNS = "runs"
MAINTENANCE = "maintenance"
RECORDER = "punctual.recorder"
AUDITOR = "punctual.auditor"
DEAD = "punctual.dead"

_QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
_VISIBILITY_TIMEOUT_S = 15
_SOCKET_TIMEOUT_S = 10
EVENTS = Exchange("punctual.events", type="topic", durable=True)


def work_queue(name: str) -> Queue:
    """A queue of runs that Celery workers consume; it has a direct exchange of the same name."""
    return Queue(name, Exchange(name, type="direct"), routing_key=name, queue_arguments=_QUORUM)


def event_queue(name: str) -> Queue:
    """A queue of its own on the event exchange: it gets every event."""
    return Queue(name, EVENTS, routing_key="#", queue_arguments=_QUORUM)


def dead_letter_queue() -> Queue:
    """Where messages are kept that nobody could read or apply, with the reason in a header."""
    return Queue(DEAD, Exchange(DEAD, type="direct"), routing_key=DEAD, queue_arguments=_QUORUM)


def declare(queue: Queue, channel: Any) -> None:
    """Make the queue, its exchange and its binding, where they are not there."""
    if isinstance(channel, VirtualChannel):
        # kombu remembers in the process what it has bound, and would not look whether Redis still knows.
        channel.state.queue_bindings_delete(queue.name)
    queue.bind(channel).declare()


def may_lose_deliveries(url: str) -> bool:
    """kombu takes a message from Redis in one step and notes that it has it in a second."""
    return url.startswith("redis")


def transport_options(url: str, namespace: str) -> dict[str, Any]:
    """What kombu has to know beside the URL of the broker.

    Redis gives a delivery that nobody acknowledged to somebody else after 15 s: no delivery
    is held for longer than a claim or a transaction takes. ``namespace`` begins its keys there.
    """
    if not may_lose_deliveries(url):
        return {"read_timeout": _SOCKET_TIMEOUT_S, "write_timeout": _SOCKET_TIMEOUT_S}
    return {
        "visibility_timeout": _VISIBILITY_TIMEOUT_S,
        "global_keyprefix": f"{namespace}.bus.",
        "socket_timeout": _SOCKET_TIMEOUT_S,
        "socket_connect_timeout": _SOCKET_TIMEOUT_S,
    }
