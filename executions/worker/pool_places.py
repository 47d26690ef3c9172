"""The places in pools of what one worker runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from executions.entries import Entry, Flag, Popped
from executions.pools import Full, Pools, Waiter, pools_of, rank, send_called
from executions.priorities import Priority
from executions.window import Window
from executions.worker.assignments import Assignment
from scheduler_project.kernel.clock import to_millis


class PoolPlaces:
    """Taken when an attempt is claimed, renewed with its claim, left when it has ended."""

    def __init__(self, pools: Pools, window: Window, now: Callable[[], datetime]) -> None:
        self._pools = pools
        self._window = window
        self._now = now
        self._lock = threading.Lock()
        self._held: dict[UUID, tuple[str, ...]] = {}

    def enter(self, given: Assignment) -> Full | None:
        """A place in each pool of the run; or the one that is full, and the run waits in its line."""
        waiter = _waiter(given)
        full, called = self._pools.enter(waiter, force=Flag.REATTACH in given.flags)
        if full is None:
            with self._lock:
                self._held[given.execution_id] = waiter.pools
        send_called(self._pools, self._window, called, self._now())
        return full

    def renew(self) -> None:
        with self._lock:
            held: Mapping[UUID, tuple[str, ...]] = dict(self._held)
        self._pools.renew(held)

    def leave(self, given: Assignment) -> None:
        """It has ended: the next may begin. Once more changes nothing."""
        self.let_go(given)
        called = self._pools.leave(given.execution_id, pools_of(given.spec))
        send_called(self._pools, self._window, called, self._now())

    def let_go(self, given: Assignment) -> None:
        """It goes on elsewhere: its places are renewed by whoever takes it up, or end."""
        with self._lock:
            self._held.pop(given.execution_id, None)


def entry_of(given: Assignment, flags: Flag, due: datetime) -> Entry:
    """What the window holds of an assignment that is sent again."""
    return Entry(
        execution_id=given.execution_id,
        spec_id=given.spec_id,
        attempt=given.attempt,
        due=due,
        generation=given.generation,
        flags=flags,
    )


def _waiter(given: Assignment) -> Waiter:
    spec = given.spec
    entry = entry_of(given, given.flags & ~Flag.RECHECK, given.scheduled_for)
    return Waiter(
        run=Popped(entry.member),
        pools=pools_of(spec),
        rank=rank(Priority(spec.priority), to_millis(given.scheduled_for)),
        must_know=bool(spec.pool or spec.max_active),
    )
