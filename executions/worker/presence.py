"""A worker says that it is there, and learns in the same breath what its engine has."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings

from containers.capacity import Capacity
from containers.runtime import Runtime
from executions.presence import PresentWorker, announce, withdraw, workers_of
from executions.store import Store, StoreUnavailable
from executions.worker.engine import CLOSE_WITHIN_S
from executions.worker.room import Needs, holds
from executions.worker.slots import Slots
from scheduler_project.kernel.loop import BackgroundService

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
PASSED_ON_AFTER = timedelta(seconds=1)
TOO_LARGE_AFTER = timedelta(seconds=30)
"""So long a run waits that no worker is large enough for, until it is tried again."""
KEPT_S = 5.0  # well within the time after which a broker gives a delivery to somebody else


class Presence:
    """Until the engine has said what it has, its worker takes whatever it has slots for."""

    def __init__(self, store: Store, name: str, slots: Slots, runtime: Runtime) -> None:
        self._store = store
        self._name = name
        self._slots = slots
        self._runtime = runtime
        self._known = False
        self._service = BackgroundService("presence", self._announce)
        self._service.start()

    def largest(self, queue: str, needs: Needs) -> Capacity | None:
        """None where a worker of the queue can hold ``needs``; otherwise what the largest of them has."""
        sizes = self._others(queue)
        if any(holds(size, needs) for size in sizes):
            return None
        return max([*sizes, self._slots.total], key=lambda size: (size.cpus or 0.0, size.memory_bytes or 0))

    def kept_for_s(self, queue: str, needs: Needs) -> float:
        """For how long a run of ``needs`` that this worker awaits room for stays in its hands.

        Where all workers of the queue are large enough, it goes back at once, and the others find it. One
        that is too small would send it to the end of the queue.
        """
        return 0.0 if all(holds(size, needs) for size in self._others(queue)) else KEPT_S

    def _others(self, queue: str) -> list[Capacity]:
        return [
            Capacity(worker.cpus, worker.memory_bytes)
            for worker in workers_of(self._store, queue)
            if worker.name != self._name
        ]

    def close(self) -> None:
        self._service.stop(CLOSE_WITHIN_S)
        try:
            withdraw(self._store, self._name)
        except StoreUnavailable:
            return  # it is not seen for long

    def _announce(self) -> float:
        if not self._known:
            total = _capacity_of(self._runtime)
            self._slots.limit_to(total)
            self._known = True
            logger.info("capacity_known", extra={"worker": self._name, "capacity": str(total)})
        total = self._slots.total
        slots = self._slots
        announce(
            self._store,
            PresentWorker(
                self._name, slots.queues, slots.count, total.cpus, total.memory_bytes, busy=slots.busy
            ),
        )
        return PERIOD_S


def _capacity_of(runtime: Runtime) -> Capacity:
    """As it is set; where it is not, what the engine has."""
    cpus, memory_bytes = settings.PUNCTUAL_WORKER_CPUS, settings.PUNCTUAL_WORKER_MEMORY_BYTES
    if cpus is not None and memory_bytes is not None:
        return Capacity(cpus, memory_bytes)
    found = runtime.capacity()
    return Capacity(
        found.cpus if cpus is None else cpus, found.memory_bytes if memory_bytes is None else memory_bytes
    )


def describe_no_room(queue: str, needs: Needs, largest: Capacity | None) -> str:
    """For what a run waits that a worker was too small for."""
    if largest is None:
        return f"a larger worker of the queue {queue!r}: it needs {needs}"
    return (
        f"a larger worker of the queue {queue!r}: it needs {needs}, and the largest has {largest}."
        " Start one, or let the job ask for less"
    )
