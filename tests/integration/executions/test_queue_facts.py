"""How much waits in the broker's queues, asked for people: over both brokers, and within a second."""

from __future__ import annotations

from typing import Any

import pytest

from executions.bus.connection import BusUnavailable, connect
from executions.bus.depths import KEPT_S, QueueFacts, queue_facts
from executions.bus.topology import declare, work_queue
from scheduler_project.kernel.clock import monotonic
from tests.integration.broker_proxies import AmqpProxy
from tests.integration.executions.brokers import OTHER_WORK, WORK, assert_waiting, use_broker


def publish(messages: int) -> None:
    with connect(confirm=True) as connection, connection.channel() as channel:
        declare(work_queue(WORK), channel)
        producer = connection.Producer(channel)
        for _ in range(messages):
            producer.publish({}, exchange=WORK, routing_key=WORK)
    assert_waiting(messages, WORK)


def test_messages_consumers_and_queues_that_are_not_there(broker: str) -> None:
    publish(3)
    found = queue_facts([WORK, OTHER_WORK])
    if broker == "redis":
        assert found == {WORK: QueueFacts(3), OTHER_WORK: QueueFacts(0)}
        return
    assert found == {WORK: QueueFacts(3, 0), OTHER_WORK: QueueFacts(0, 0, exists=False)}
    with connect() as connection, connection.channel() as channel:
        consumer = connection.Consumer([work_queue(WORK)(channel)], channel=channel, prefetch_count=1)
        with consumer:
            assert queue_facts((WORK,))[WORK].consumers == 1


def test_a_silent_broker_keeps_nobody_for_longer_than_a_second(rabbitmq: AmqpProxy) -> None:
    rabbitmq.hold()
    for _ in range(2):
        began = monotonic()
        with pytest.raises(BusUnavailable, match="does not answer"):
            queue_facts([WORK])
        assert monotonic() - began < 1.3


def test_a_broker_that_is_away_is_said_at_once(settings: Any) -> None:
    use_broker(settings, "pyamqp://127.0.0.1:1//")
    began = monotonic()
    with pytest.raises(BusUnavailable, match="does not answer"):
        queue_facts([WORK])
    assert monotonic() - began < 1.2


def test_many_who_ask_at_once_ask_the_broker_once(rabbitmq: AmqpProxy) -> None:
    before, began = rabbitmq.connections, monotonic()
    answers = [queue_facts([WORK]) for _ in range(20)]
    assert all(answer == answers[0] for answer in answers)
    assert rabbitmq.connections - before <= 1 + (monotonic() - began) // KEPT_S
