"""Taking no more than can be run: the subscription follows the room that is left.

Acknowledging a delivery frees its place in the prefetch window, so the broker would send a
full worker one more, which then waits in its hands although another could start it. So:

1. The prefetch is 1, set before the consumer subscribes (a running consumer on a quorum
   queue cannot change it).
2. A delivery has its slot, its CPUs and its memory from its arrival on. What there is no slot for goes
   back to the head of its queue once the subscription is cancelled: each queue has a prefetch of its own.
   What there is a slot but no room for is looked at first (it may not be wanted any more), and a worker that
   awaits it takes from its queue again every LOOKED_AT_S, to see whether it is still there.
3. Each claim and each release schedules ``_settle`` on the event loop, the only thread that
   may touch the channel.
4. ``_settle`` first closes the intake (intake.py) to what there is no room for, then acknowledges, and then
   opens it to what there is room for. While that takes one run after the other, what has ended meanwhile is
   acknowledged in between: with runs that end at once it may go on for long.

Beside the queues of runs a worker consumes the one of its container engine (executions/engines.py).
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from celery.exceptions import InvalidTaskError
from celery.worker.request import Request

from containers.capacity import Capacity
from executions.entries import Flag
from executions.priorities import by_priority
from executions.worker.assignments import Assignment, read_arguments
from executions.worker.intake import Intake
from executions.worker.room import Needs, Room, Takes, Verdict, needs_of
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

LOOKED_AT_S = 2.0
"""So long a run is awaited until it is looked at again."""
ENDING_HEARD_S = 0.25


class NoRoom(InvalidTaskError):
    """There is no room for this delivery now: it goes back to its queue."""


class Slots:
    """The room of one run worker. ``free`` and ``settle`` may be called from any thread.

    ``queues``: the queues of runs that it takes from.
    """

    def __init__(self, count: int, queues: Sequence[str]) -> None:
        self.queues = tuple(queues)
        self._room = Room(count, Capacity())
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._consumer: Any = None
        self._intake: Intake | None = None
        self._extra = ""
        self._accepting = True
        self._looks = self._goes_on = False  # whether that is scheduled
        self._answers: deque[Callable[[], None]] = deque()

    @property
    def total(self) -> Capacity:
        return self._room.total

    @property
    def count(self) -> int:
        return self._room.slots

    @property
    def busy(self) -> int:
        """Slots that are taken now."""
        return self._room.busy

    def limit_to(self, total: Capacity) -> None:
        """What the engine has is known."""
        with self._changed:
            self._room.total = total
            self._changed.notify_all()
        self._schedule()

    def attach(self, consumer: Any) -> None:
        """A connection is up."""
        self._consumer = consumer
        classes = by_priority(self.queues)
        self._intake = Intake(consumer.task_consumer, classes, self._takes, self._awaits, self._answer_all)
        self._looks = self._goes_on = False
        self._schedule()

    def consume_also(self, queue: str) -> None:
        """Take runs from this queue of the broker too, on this connection and those that follow."""
        self._extra = queue
        self._schedule()

    def take(self, needs: Needs, *, begun: bool) -> Verdict:
        """On the event loop: room for a delivery, and the intake closed where that was the last."""
        with self._lock:
            verdict = self._room.take(needs, begun=begun)
        if self._intake is not None:
            self._intake.narrow()
        return verdict

    def move_in(self, needs: Needs, within_s: float) -> bool:
        """Room for the run in hand, where there is some by now or ``within_s``."""
        until = monotonic() + within_s
        with self._changed:
            while self._accepting and not self._room.fits(needs) and (left := until - monotonic()) > 0:
                self._changed.wait(min(left, ENDING_HEARD_S))
            fits = self._accepting and self._room.fits(needs)
            if fits:
                self._room.move_in(needs)
        return fits

    def put_back(self, *, look_again: bool) -> None:
        """The run in hand is answered. ``look_again``: at once, and not only some time later."""
        with self._lock:
            self._room.put_back()
            if look_again:
                self._room.look_again()

    def free(self, needs: Needs) -> None:
        with self._changed:
            self._room.leave(needs)
            self._changed.notify_all()
        self._schedule()

    def settle(self, answer: Callable[[], None]) -> None:
        """Bring the intake in line, and answer a delivery; both on the event loop."""
        self._answers.append(answer)
        self._schedule()

    def stop_accepting(self) -> None:
        """The worker is going to end: take nothing more. From a signal's handler too: it may take no lock."""
        self._accepting = False
        self._schedule()

    def _schedule(self) -> None:
        if self._consumer is not None:
            self._consumer.call_soon(self._settle)

    def _settle(self) -> None:
        intake = self._intake
        if intake is None or self._consumer.task_consumer is None:
            self._answer_all()
            return
        if self._extra:
            intake.add(self._extra)
        intake.narrow()
        self._answer_all()
        if not intake.open() and not self._goes_on:
            self._goes_on = True
            self._consumer.hub.call_later(0, self._go_on)
        self._look_later()

    def _go_on(self) -> None:
        self._goes_on = False
        self._settle()

    def _answer_all(self) -> None:
        while self._answers:
            self._answers.popleft()()

    def _look_later(self) -> None:
        if not self._looks and self._awaits():
            self._looks = True
            self._consumer.hub.call_later(LOOKED_AT_S, self._look)

    def _look(self) -> None:
        self._looks = False
        with self._lock:
            self._room.look_again()
        self._settle()

    def _awaits(self) -> bool:
        with self._lock:
            return self._room.awaits

    def _takes(self) -> Takes:
        with self._lock:
            return self._room.takes if self._accepting else Takes.NOTHING


class RunRequest(Request):
    """A delivery of a run. Celery acknowledges from a pool's thread; here that goes to the loop, once.

    InvalidTaskError for what is no run, before anything has begun: the consumer buries it. NoRoom for what
    this worker has no slot for: the consumer gives it back. ``verdict``: what else is to be done with it.
    """

    slots: Slots | None = None
    assignment: Assignment
    message: Any
    _payload: Any
    _connection_errors: tuple[type[BaseException], ...]
    _answered = False
    needs = Needs()
    asked = Needs()
    verdict = Verdict.TAKEN
    _looked_at = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
            self.assignment = self._read()
        except InvalidValue as error:
            raise InvalidTaskError(error.message) from error
        except Exception as error:  # a header may be anything
            raise InvalidTaskError(f"{type(error).__name__}: {error}") from error
        if self.slots is not None:
            self._take_room(self.slots)
        deliveries.arrive(self)

    def _take_room(self, slots: Slots) -> None:
        self.asked = needs = needs_of(self.assignment.spec)
        self.verdict = slots.take(needs, begun=Flag.REATTACH in self.assignment.flags)
        if self.verdict is Verdict.NOT_NOW:
            raise NoRoom
        if self.verdict is Verdict.TAKEN:
            self.needs = needs

    def move_in(self, within_s: float) -> bool:
        """Room for one that is awaited, where there is some by now or ``within_s``."""
        if self.slots is None or not self.slots.move_in(self.asked, within_s):
            self._looked_at = within_s <= 0
            return False
        self.verdict, self.needs = Verdict.TAKEN, self.asked
        return True

    def free(self) -> None:
        """It has ended: its room is free."""
        if self.slots is not None:
            if not self._answered:  # it was revoked
                self._let_go_of()
            self.slots.free(self.needs)

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
        self._let_go_of()

    def _return_now(self) -> None:
        self.message.reject_log_error(logger, self._connection_errors, requeue=True)
        self.acknowledged = True
        self._let_go_of()

    def _let_go_of(self) -> None:
        """One that was awaited is in hand no more. What was kept until now, or is not wanted, is looked at
        again at once: before anybody else has taken the first, and as the second does not come back."""
        if self.slots is not None and self.verdict is Verdict.AWAITED:
            self.slots.put_back(look_again=not self._looked_at)

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
