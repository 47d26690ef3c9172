"""The brokers that the tests of the bus run over, with queues of their own."""

from __future__ import annotations

import time
from typing import Any

from executions.bus.connection import broker_errors, connect
from executions.bus.depths import messages_waiting
from executions.bus.topology import AUDITOR, DEAD, RECORDER, transport_options
from scheduler_project.kernel.clock import monotonic

WORK, OTHER_WORK = "runs-of-a-test", "other-runs-of-a-test"


def use_broker(settings: Any, url: str) -> None:
    settings.BROKER_URL = url
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(url, settings.PUNCTUAL_NAMESPACE)
    broker_errors.cache_clear()


def purge() -> None:
    """The queues are gone (RabbitMQ), or at least empty."""
    with connect() as connection, connection.channel() as channel:
        for queue in (RECORDER, AUDITOR, DEAD, WORK, OTHER_WORK):
            if connection.transport.driver_type == "amqp":
                channel.queue_delete(queue)  # type: ignore[attr-defined]
            else:
                channel.queue_purge(queue)  # type: ignore[attr-defined]


def assert_waiting(number: int, *queues: str) -> None:
    """A quorum queue counts with a delay."""
    deadline = monotonic() + 10
    while (found := messages_waiting(queues)) != number:
        assert monotonic() < deadline, found
        time.sleep(0.05)
