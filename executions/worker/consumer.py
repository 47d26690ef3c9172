"""Celery's consumer as a run worker needs it: without what runs do not use, with slots."""

from __future__ import annotations

from typing import Any, ClassVar

from celery import bootsteps
from celery.worker.consumer import Consumer
from celery.worker.consumer.tasks import Tasks
from django.core.exceptions import ImproperlyConfigured

from executions.bus.topology import RUNS
from executions.worker.process import open_worker
from executions.worker.slots import RunRequest, Slots


class RunSlots(bootsteps.StartStopStep):
    """Sets up what runs need, in a worker that consumes their queue; started anew after each reconnect."""

    requires = (Tasks,)

    def include_if(self, consumer: Any) -> bool:
        return RUNS in consumer.app.amqp.queues.consume_from

    def create(self, consumer: Any) -> None:
        if not type(consumer.pool).__module__.endswith("concurrency.thread"):
            raise ImproperlyConfigured(
                "a worker of the queue 'runs' needs Celery's pool 'threads': -P threads"
            )
        consumer.initial_prefetch_count = 1
        RunRequest.slots = Slots(consumer.pool.limit)
        open_worker(RunRequest.slots, consumer.hostname)

    def start(self, consumer: Any) -> None:
        assert RunRequest.slots is not None  # noqa: S101 -- create has made them
        RunRequest.slots.attach(consumer)


class RunConsumer(Consumer):
    """No mingle, gossip, heartbeat events and delayed-delivery queues: a run is sent when it is due."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[valid-type, misc]
        default_steps: ClassVar[list[Any]] = [
            *[step for step in Consumer.Blueprint.default_steps if "delayed_delivery" not in step],
            RunSlots,
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(without_mingle=True, without_gossip=True, without_heartbeat=True)
        super().__init__(*args, **kwargs)
