"""Whether the broker's queues are as this version declares them. Nothing is made or changed by looking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kombu import Connection, Queue

from executions.bus.connection import connect, reachable
from executions.bus.depths import QueueFacts, facts_of
from executions.bus.topology import (
    AUDITOR,
    MAINTENANCE,
    RECORDER,
    dead_letter_queue,
    event_queue,
    work_queue,
)
from executions.priorities import by_priority


@dataclass(frozen=True, slots=True)
class QueueState:
    """``complaint``: how the queue differs from what this version would make, in the broker's words; empty
    where it does not, or is not there."""

    name: str
    facts: QueueFacts
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """``product``: name and version, as far as it says them."""

    product: str
    queues: Sequence[QueueState]


def broker_state(of_runs: Sequence[str], within_s: float) -> BrokerState:
    """The queues of events, of maintenance and of dead letters, and those of these queues of runs.

    BusUnavailable where it does not answer; ``within_s``: how long each answer may take.
    """
    queues = _expected(of_runs)
    with reachable(), connect(within_s=within_s) as connection:
        connection.connect()
        return BrokerState(_product(connection), [_state(connection, queue) for queue in queues])


def _expected(of_runs: Sequence[str]) -> list[Queue]:
    classes = [name for each in by_priority(of_runs) for name in each]
    own = [event_queue(RECORDER), event_queue(AUDITOR), dead_letter_queue(), work_queue(MAINTENANCE)]
    return [*own, *(work_queue(name) for name in classes)]


def _product(connection: Connection) -> str:
    properties = getattr(connection.connection, "server_properties", None) or {}
    words = [properties.get(name, "") for name in ("product", "version")]
    return " ".join(str(word) for word in words if word) or connection.transport.driver_type


def _state(connection: Connection, queue: Queue) -> QueueState:
    facts = facts_of(connection, queue.name)
    if connection.transport.driver_type != "amqp" or not facts.exists:
        return QueueState(queue.name, facts)
    try:
        with connection.channel() as channel:
            queue.bind(channel).queue_declare()
    except connection.channel_errors as error:
        return QueueState(queue.name, facts, getattr(error, "reply_text", "") or str(error))
    return QueueState(queue.name, facts)
