"""Where a worker takes its runs from: the broker's queues of its queues, class by class.

While there is room and nothing waits it is subscribed to all of them. Once it has been full, it takes one
by one what has come meanwhile, from a lower class only where every higher one is empty, and subscribes
again when all are. So of two runs that wait, the one of the higher class begins first, on every broker.
While it awaits room for a large run, it does so with the queue of its engine alone: what has begun comes in.

Nothing here may be called but by the event loop's thread. A delivery may arrive while the broker is asked
something, and what it leads to may close the intake in the middle of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from executions.bus.topology import declare, work_queue
from executions.worker.room import Takes
from scheduler_project.kernel.clock import monotonic

DECLARED_FOR_S = 3600.0
MOST_AT_ONCE = 100


class Intake:
    """``classes``: names of the broker's queues, the highest class first. One for each connection.

    ``takes``: what may be taken. ``awaits``: whether the last one goes back, to be taken first when there is
    room for it. ``between``: is called between two that are taken one by one.
    """

    def __init__(
        self,
        subscription: Any,
        classes: Sequence[Sequence[str]],
        takes: Callable[[], Takes],
        awaits: Callable[[], bool],
        between: Callable[[], None],
    ) -> None:
        self._subscription = subscription
        self._classes = [list(names) for names in classes]
        self._takes = takes
        self._awaits = awaits
        self._between = between
        self._queues = {queue.name: queue for queue in subscription.queues}
        self._declare_at: dict[str, float] = {}
        self._of_engine: list[str] = []
        self._subscribed: list[str] = []
        subscription.auto_declare = False  # that is done
        self._cancel(list(self._queues))  # Celery subscribes to what it finds here when its loop starts

    def add(self, name: str) -> None:
        """One more, before all classes: what has begun already comes first.

        Called before each use: it may have expired while a worker was full for days.
        """
        if monotonic() >= self._declare_at.get(name, 0.0):
            self.close()
            queue = work_queue(name)
            declare(queue, self._subscription.channel)
            self._declare_at[name] = monotonic() + DECLARED_FOR_S
        if name not in self._queues:
            self._queues[name] = queue
            self._classes.insert(0, [name])
            self._of_engine.append(name)

    def open(self) -> bool:
        """Take what waits while there is room; subscribe where all queues are empty and there still is.

        Whether that is done. The event loop has more to do: after MOST_AT_ONCE it is to be called again,
        soon. What is taken may end at once (somebody else has run it), and there is room again for ever.
        """
        left = MOST_AT_ONCE
        while (names := self._wanted()) != self._subscribed:
            self.close()
            for of_class in self._classes:
                left = self._take(of_class, left)
            if not left:
                return False
            if names == self._wanted():
                self._subscribe(names)
        return True

    def narrow(self) -> None:
        """Take nothing more of what there is no room for."""
        if self._subscribed != self._wanted():
            self.close()

    def close(self) -> None:
        """Take nothing more."""
        names, self._subscribed = self._subscribed, []
        self._cancel(names)

    def _wanted(self) -> list[str]:
        """The queues to be subscribed to."""
        match self._takes():
            case Takes.NOTHING:
                return []
            case Takes.BEGUN:
                return self._of_engine
            case Takes.ANYTHING:
                return list(self._queues)

    def _subscribe(self, names: list[str]) -> None:
        if not names:
            return
        for name in names:
            self._subscription.add_queue(self._queues[name])
        self._subscribed = list(names)
        self._subscription.consume()
        if not self._subscribed:
            self._cancel(names)

    def _cancel(self, names: Sequence[str]) -> None:
        for name in names:  # what is cancelled all at once is subscribed to again with the next
            self._subscription.cancel_by_queue(name)

    def _take(self, names: list[str], most: int) -> int:
        """By turns where a class has several queues; but what was sent back has the next turn too.

        How many more than were taken might have been.
        """
        waiting = list(names)
        while most and waiting and waiting[0] in self._wanted():
            name = waiting[0]
            message = self._subscription.channel.basic_get(queue=name, no_ack=False)
            if message is None:
                waiting.remove(name)
                continue
            most -= 1
            # As what the broker pushes: with the same care for what cannot be read.
            self._subscription._receive_callback(message)
            if not self._awaits():
                for order in (names, waiting):
                    order.remove(name)
                    order.append(name)
            self._between()
        return most
