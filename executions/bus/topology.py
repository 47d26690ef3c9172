"""Exchanges and queues by name; who declares them declares all of them alike.

Queues are durable quorum queues on RabbitMQ; on Redis kombu ignores the arguments. The
delivery limit is out of reach on purpose: RabbitMQ 4 drops a message after 20 returns,
which a long outage of the database would use up.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kombu import Exchange, Queue
from kombu.transport.virtual import Channel as VirtualChannel

from executions.addresses import each_host, read_redis
from executions.priorities import DEFAULT_QUEUE

RUNS = DEFAULT_QUEUE
MAINTENANCE = "maintenance"
RECORDER = "punctual.recorder"
AUDITOR = "punctual.auditor"
DEAD = "punctual.dead"
ENGINE_QUEUE = "punctual.engine."
"""Begins the names of the queues of container engines."""

HEARTBEAT_S = 10
"""RabbitMQ hangs up on a connection that was silent for two of these; a stall of the machine is shorter."""

_QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
_UNUSED_FOR_MS = 86_400_000  # longer than the sweep waits for anything that it has sent
_VISIBILITY_TIMEOUT_S = 15
_SOCKET_TIMEOUT_S = 10
_SENTINELS = "redis+sentinel://"
EVENTS = Exchange("punctual.events", type="topic", durable=True)


def work_queue(name: str) -> Queue:
    """A queue of runs that Celery workers consume; it has a direct exchange of the same name.

    That of a container engine goes a day after its last worker has gone, with what is in it: the sweep
    has sent that elsewhere long ago.
    """
    arguments = {**_QUORUM, "x-expires": _UNUSED_FOR_MS} if name.startswith(ENGINE_QUEUE) else _QUORUM
    return Queue(name, Exchange(name, type="direct"), routing_key=name, queue_arguments=arguments)


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
    return url.startswith(("redis", "sentinel"))


def kombu_url(url: str) -> str:
    """A BROKER_URL as kombu reads it: one URL for each of several hosts, with semicolons between them.

    Where librabbitmq can be imported, kombu takes it for ``amqp://`` and publisher confirms are silently
    gone: such a URL is spelled ``pyamqp://``.
    """
    if url.startswith("amqp://"):
        url = "py" + url
    if url.startswith(_SENTINELS):
        address = read_redis(url)
        database = urlsplit(address.url)
        path = database.path.strip("/") or "0"
        login = f"{database.netloc.rpartition('@')[0]}@" if "@" in database.netloc else ""
        return ";".join(f"sentinel://{login}{host}:{port}/{path}" for host, port in address.hosts)
    return ";".join(each_host(url)) if "," in urlsplit(url).netloc else url


def transport_options(url: str, namespace: str) -> dict[str, Any]:
    """What kombu has to know beside the URL of the broker.

    Redis gives a delivery that nobody acknowledged to somebody else after 15 s: no delivery
    is held for longer than a claim or a transaction takes. ``namespace`` begins its keys there.
    """
    if not may_lose_deliveries(url):
        return {"read_timeout": _SOCKET_TIMEOUT_S, "write_timeout": _SOCKET_TIMEOUT_S}
    return {
        **_of_sentinels(url),
        "visibility_timeout": _VISIBILITY_TIMEOUT_S,
        "global_keyprefix": f"{namespace}.bus.",
        "socket_timeout": _SOCKET_TIMEOUT_S,
        "socket_connect_timeout": _SOCKET_TIMEOUT_S,
    }


def _of_sentinels(url: str) -> dict[str, Any]:
    """Whom the Sentinels are asked for, and how this process logs in to them."""
    if not url.startswith(_SENTINELS):
        return {}
    address = read_redis(url)
    patience = {"socket_timeout": _SOCKET_TIMEOUT_S, "socket_connect_timeout": _SOCKET_TIMEOUT_S}
    return {
        "master_name": address.primary,
        "sentinel_kwargs": {**patience, **dict(address.sentinel_login)},
    }
