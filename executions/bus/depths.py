"""How much waits in the broker's queues, and how many consumers they have.

People's pages ask through ``queue_facts``, which answers within a second whatever the broker does: the
question goes over a connection with short time limits, in a thread that is left behind where even these do
not hold, and answers are kept for a moment, so that a page that many look at asks once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from kombu import Connection

from executions.bus.connection import BusUnavailable, connect, reachable
from scheduler_project.kernel.clock import monotonic

ANSWER_WITHIN_S = 1.0
KEPT_S = 1.0
_STEP_S = 0.7  # for one answer of the broker, where it is asked for people
_ASKING = 2


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """``messages``: those that wait; what is in somebody's hands does not count. ``consumers``: None where
    the broker does not know (Redis). ``exists``: False where nobody has declared it yet."""

    messages: int
    consumers: int | None = None
    exists: bool = True


def messages_waiting(queues: Iterable[str]) -> int:
    """How many messages wait in ``queues``, altogether. BusUnavailable, as late as the settings say."""
    with reachable(), connect() as connection:
        return sum(facts_of(connection, name).messages for name in queues)


def queue_facts(queues: Sequence[str], within_s: float = ANSWER_WITHIN_S) -> dict[str, QueueFacts]:
    """Of each of the broker's queues (``priorities.broker_queue``), at most KEPT_S old.

    BusUnavailable where the broker does not answer within ``within_s``.
    """
    try:
        return _asked(tuple(queues)).result(within_s)
    except NotInTime:
        raise BusUnavailable(f"the broker does not answer within {within_s:g} s (BROKER_URL)") from None


_lock = threading.Lock()
_answers: dict[tuple[str, tuple[str, ...]], tuple[float, Future[dict[str, QueueFacts]]]] = {}


def _asked(queues: tuple[str, ...]) -> Future[dict[str, QueueFacts]]:
    """The question that is under way, or was answered a moment ago, or a new one."""
    key, now = (settings.BROKER_URL, queues), monotonic()
    with _lock:
        for old in [known for known, (at, asked) in _answers.items() if asked.done() and now - at > KEPT_S]:
            del _answers[old]
        if key not in _answers:
            _answers[key] = now, _threads().submit(_ask, queues)
        return _answers[key][1]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_ASKING, thread_name_prefix="queue-facts")


def _ask(queues: tuple[str, ...]) -> dict[str, QueueFacts]:
    with reachable(), connect(within_s=_STEP_S) as connection:
        return {name: facts_of(connection, name) for name in queues}


def facts_of(connection: Connection, queue: str) -> QueueFacts:
    # kombu's Redis transport looks for a queue without its key prefix, and so finds none
    amqp = connection.transport.driver_type == "amqp"
    try:
        with connection.channel() as channel:
            declare: Any = channel.queue_declare  # type: ignore[attr-defined]
            found = declare(queue, passive=amqp)
    except connection.channel_errors:  # there is no such queue
        return QueueFacts(0, 0 if amqp else None, exists=False)
    return QueueFacts(int(found.message_count), int(found.consumer_count) if amqp else None)
