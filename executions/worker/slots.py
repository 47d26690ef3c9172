"""Taking no more than can be run: the subscription follows the free slots.

Acknowledging a delivery frees its place in the prefetch window, so the broker would send a
full worker one more, which then waits in its hands although another could start it. So:

1. The prefetch is 1, set before the consumer subscribes (a running consumer on a quorum
   queue cannot change it).
2. Each claim and each release schedules ``_settle`` on the event loop, the only thread that
   may touch the channel.
3. ``_settle`` first brings the subscription to what the free slots ask for (cancel where
   there is none, consume where there is one), and only then acknowledges.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from celery.exceptions import InvalidTaskError
from celery.worker.request import Request

from executions.worker.assignments import Assignment, read_arguments
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)


class Slots:
    """The slots of one run worker. ``occupy`` and ``free`` may be called from any thread."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._busy = 0
        self._lock = threading.Lock()
        self._consumer: Any = None
        self._subscribed = False
        self._accepting = True

    def attach(self, consumer: Any) -> None:
        """A connection is up; Celery subscribes when its loop starts."""
        self._consumer = consumer
        self._subscribed = True
        self._schedule(None)

    def occupy(self) -> None:
        with self._lock:
            self._busy += 1

    def free(self) -> None:
        with self._lock:
            self._busy -= 1
        self._schedule(None)

    def settle(self, answer: Callable[[], None]) -> None:
        """Bring the subscription in line, then answer a delivery; both on the event loop."""
        self._schedule(answer)

    def stop_accepting(self) -> None:
        """The worker is going to end: take nothing more."""
        self._accepting = False
        self._schedule(None)

    def _schedule(self, answer: Callable[[], None] | None) -> None:
        if self._consumer is not None:
            self._consumer.call_soon(partial(self._settle, answer))

    def _settle(self, answer: Callable[[], None] | None) -> None:
        with self._lock:
            wanted = self._accepting and self._busy < self.count
        subscription = self._consumer.task_consumer
        if subscription is not None and wanted != self._subscribed:
            if wanted:
                subscription.consume()
            else:
                subscription.cancel()
            self._subscribed = wanted
        if answer is not None:
            answer()


class RunRequest(Request):
    """A delivery of a run. Celery acknowledges from a pool's thread; here that goes to the loop, once.

    InvalidTaskError for what is no run, before anything has begun: the consumer buries it.
    """

    slots: Slots | None = None
    assignment: Assignment
    message: Any
    _payload: Any
    _connection_errors: tuple[type[BaseException], ...]
    _answered = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
            self.assignment = self._read()
        except InvalidValue as error:
            raise InvalidTaskError(error.message) from error
        except Exception as error:  # a header may be anything
            raise InvalidTaskError(f"{type(error).__name__}: {error}") from error
        deliveries.arrive(self)

    def _read(self) -> Assignment:
        extras = [self.args, self.eta, self.expires, *self.time_limits, *(self._payload[2] or {}).values()]
        if any(extras):
            raise InvalidValue("a run has named arguments only, no eta, expires, time limit or callback")
        return read_arguments(self.kwargs)

    def acknowledge(self) -> None:
        self._answer(self._acknowledge_now)

    def give_back(self) -> None:
        """Return it to the queue: somebody else may take it."""
        self._answer(self._return_now)

    # Celery's own ways schedule the answer on the loop once more, and a callback that the loop's
    # own thread schedules waits for the next wake-up: up to a second, with a prefetch of one.

    def _acknowledge_now(self) -> None:
        self.message.ack_log_error(logger, self._connection_errors)
        self.acknowledged = True

    def _return_now(self) -> None:
        self.message.reject_log_error(logger, self._connection_errors, requeue=True)
        self.acknowledged = True

    def _answer(self, answer: Callable[[], None]) -> None:
        if self.slots is not None and not self._answered:
            self._answered = True
            self.slots.settle(answer)


class Deliveries:
    """The deliveries that no task has begun with yet, by task id. The same run may be delivered twice."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[RunRequest]] = defaultdict(deque)
        self._lock = threading.Lock()

    def arrive(self, request: RunRequest) -> None:
        with self._lock:
            self._waiting[request.id].append(request)

    def begin(self, task_id: str) -> RunRequest:
        with self._lock:
            waiting = self._waiting[task_id]
            request = waiting.popleft()
            if not waiting:
                del self._waiting[task_id]
        return request


deliveries = Deliveries()
