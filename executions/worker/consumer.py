"""Celery's consumer as a run worker needs it: without what runs do not use, with slots and a burial.

Celery drops a message that it cannot read, looks for a result backend to blame an unknown
task on, and ends where a header surprises it. Here such a message goes to the dead-letter
queue with the reason, and the next one is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from celery import bootsteps
from celery.worker.consumer import Consumer
from celery.worker.consumer.tasks import Tasks
from django.core.exceptions import ImproperlyConfigured

from executions.alive import say_alive
from executions.bus.connection import BusUnavailable
from executions.bus.dead_letters import DeadLetters
from executions.bus.topology import MAINTENANCE, RUNS, work_queue
from executions.priorities import by_priority, read_queue, run_queue
from executions.worker.process import current_worker, let_go, open_worker
from executions.worker.slots import NoRoom, RunRequest, Slots
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.pulse import PULSE, WITHIN_S

logger = logging.getLogger(__name__)

LOOP = "event loop"
LOOP_SAYS_SO_S = 1.0


class RunSlots(bootsteps.StartStopStep):
    """Sets up what runs need, in a worker that consumes their queue; started anew after each reconnect."""

    requires = (Tasks,)

    def include_if(self, consumer: Any) -> bool:
        return bool(_run_queues(consumer))

    def create(self, consumer: Any) -> None:
        if not type(consumer.pool).__module__.endswith("concurrency.thread"):
            raise ImproperlyConfigured("a worker of queues of runs needs Celery's pool 'threads': -P threads")
        consumer.initial_prefetch_count = 1
        queues = _run_queues(consumer)
        for names in by_priority(queues):
            for name in names:
                consumer.app.amqp.queues.select_add(work_queue(name))
        RunRequest.slots = Slots(consumer.pool.limit, queues)
        open_worker(RunRequest.slots, consumer.hostname)

    def start(self, consumer: Any) -> None:
        assert RunRequest.slots is not None  # noqa: S101 -- create has made them
        RunRequest.slots.attach(consumer)


class LoopPulse(bootsteps.StartStopStep):
    """The event loop says that it goes round; while there is no connection Celery connects, for ever."""

    requires = (Tasks,)

    def create(self, _consumer: Any) -> None:
        say_alive()

    def register_with_event_loop(self, _consumer: Any, hub: Any) -> None:
        self._goes_round()
        hub.call_repeatedly(LOOP_SAYS_SO_S, self._goes_round)

    def stop(self, _consumer: Any) -> None:
        PULSE.excuse(LOOP)

    @staticmethod
    def _goes_round() -> None:
        PULSE.expect(LOOP, WITHIN_S)


def _run_queues(consumer: Any) -> list[str]:
    """The queues of runs that this worker was started for (``-Q``, or the setting)."""
    found = dict.fromkeys(run_queue(name) for name in consumer.app.amqp.queues.consume_from)
    try:
        return [read_queue(name, "-Q") for name in found if name != MAINTENANCE]
    except InvalidValue as error:
        raise ImproperlyConfigured(f"-Q: {error.message}") from error


class RunConsumer(Consumer):
    """No mingle, gossip, heartbeat events and delayed-delivery queues: a run is sent when it is due."""

    connection_errors: tuple[type[BaseException], ...]

    class Blueprint(Consumer.Blueprint):  # type: ignore[valid-type, misc]
        default_steps: ClassVar[list[Any]] = [
            *[step for step in Consumer.Blueprint.default_steps if "delayed_delivery" not in step],
            RunSlots,
            LoopPulse,
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(without_mingle=True, without_gossip=True, without_heartbeat=True)
        self._dead_letters = DeadLetters()
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Celery is about to wait for its threads: a signal, remote control or an error tells it to."""
        let_go()

    def cancel_active_requests(self) -> None:
        """A cold shutdown (SIGQUIT, a second SIGINT): to runs it is as any other."""
        if current_worker() is None:
            super().cancel_active_requests()
        let_go()

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        handle = super().create_task_handler(*args, **kwargs)

        def handle_or_bury(message: Any) -> None:
            if reason := _unreadable(message):
                self._bury(message, reason, "Unreadable")
            else:
                handle(message)

        return handle_or_bury

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._bury(message, f"there is no task {exc}", "UnknownTask")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        if isinstance(exc, NoRoom):
            message.reject_log_error(logger, self.connection_errors, requeue=True)
        else:
            self._bury(message, str(exc), type(exc).__name__)

    def _bury(self, message: Any, reason: str, kind: str) -> None:
        """The log says of it only what ``kind`` of fault it is: the reason may quote the message."""
        queue = (message.delivery_info or {}).get("routing_key") or RUNS
        logger.error("message_buried", extra={"queue": queue, "error": kind})
        try:
            self._dead_letters.bury(message, queue=queue, reason=reason)
        except BusUnavailable as error:
            logger.warning("burial_waits", extra={"queue": queue, "error": error.message})
            message.reject_log_error(logger, self.connection_errors, requeue=True)
        else:
            message.ack_log_error(logger, self.connection_errors)


def _unreadable(message: Any) -> str:
    """Why this is no message of Celery's protocol 2; empty where it is one."""
    if not isinstance((message.headers or {}).get("task"), str):
        return "not a message of Celery's: no header names its task"
    try:
        body = message.payload
    except Exception as error:  # whatever a serializer raises
        return f"{type(error).__name__}: {error}"
    if not isinstance(body, list | tuple) or len(body) != 3:
        return "not a message of Celery's protocol 2: its body is no [args, kwargs, embed]"
    return ""
