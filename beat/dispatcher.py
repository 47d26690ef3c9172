"""The dispatcher: one tick pops what is due, publishes it, and clears what the broker has confirmed.

    pop (Lua, leases) ─▶ publish in batches ─▶ confirmed ─▶ clear from in-flight, note as sent
                                           └▶ not confirmed: the lease ends and it is popped again

The database is not touched. JOB_QUEUED travels as one message a batch; should it be lost, the
run's own JOB_STARTED says the same.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from beat.ownership import Ownership
from executions.bus.publishing import EventPublisher, RunMessage, RunPublisher
from executions.entries import Popped
from executions.events import encode_queued
from executions.window import Due, Window
from executions.worker.assignments import message_arguments, task_id
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

BATCH = 1000
MOST_A_TICK = 2000
IDLE_S = 0.05
UNAVAILABLE_S = 0.5
SPECS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class DispatchTimes:
    """``lease``: how long a popped run is ours; ``sent_kept``: how long a sent one is remembered."""

    lease: timedelta
    sent_kept: timedelta


class Dispatcher:
    def __init__(
        self,
        window: Window,
        ownership: Ownership,
        runs: RunPublisher,
        events: EventPublisher,
        times: DispatchTimes,
        want_spec: Callable[[int, bytes], None],
    ) -> None:
        self._window = window
        self._ownership = ownership
        self._runs = runs
        self._events = events
        self._times = times
        self._want_spec = want_spec
        self._specs: OrderedDict[bytes, bytes] = OrderedDict()

    def tick(self) -> float:
        """Dispatch what is due; the seconds until the next tick (0: more is due already)."""
        try:
            shards = self._ownership.owned()
            dues = self._window.pop(shards, self._times.lease, _share(len(shards)))
            self._dispatch(dues)
        except RetryableError as error:
            logger.warning("dispatch_waits", extra={"error": error.message})
            return UNAVAILABLE_S
        return _pause(dues)

    def close(self) -> None:
        self._runs.close()
        self._events.close()

    def _dispatch(self, dues: Sequence[Due]) -> None:
        self._forget_old_specs()
        batch: list[tuple[int, Popped]] = []
        for due in dues:
            self._fetch_specs(due)
            batch += [(due.shard, run) for run in due.runs if self._has_spec(due.shard, run)]
        for start in range(0, len(batch), BATCH):
            self._send(batch[start : start + BATCH], dues[0].now)

    def _send(self, batch: Sequence[tuple[int, Popped]], now: datetime) -> None:
        refused = self._runs.publish([self._message(run, now) for _, run in batch])
        sent = [item for position, item in enumerate(batch) if position not in refused]
        by_shard: dict[int, list[Popped]] = defaultdict(list)
        for shard, run in sent:
            by_shard[shard].append(run)
        for shard, runs in by_shard.items():
            self._window.confirm(shard, runs, now, self._times.sent_kept)
        if sent:
            queued = [(run.execution_id, run.attempt, run.generation) for _, run in sent]
            self._events.publish(encode_queued(queued, now))
        logger.info("runs_sent", extra={"runs": len(sent), "refused": len(refused)})

    def _message(self, run: Popped, now: datetime) -> RunMessage:
        spec = self._specs[run.spec_head]
        return RunMessage(
            task_id(run.execution_id, run.attempt),
            message_arguments(run, spec, now),
        )

    def _fetch_specs(self, due: Due) -> None:
        unknown = {run.spec_head for run in due.runs} - self._specs.keys()
        self._specs.update(self._window.specs(due.shard, sorted(unknown)))

    def _forget_old_specs(self) -> None:
        """Between ticks only: a batch needs all of its own until it is sent."""
        while len(self._specs) > SPECS_KEPT:
            self._specs.popitem(last=False)

    def _has_spec(self, shard: int, run: Popped) -> bool:
        if run.spec_head in self._specs:
            return True
        self._want_spec(shard, run.spec_head)  # it stays in flight until its lease ends
        return False


def _share(shards: int) -> int:
    """How many to pop of each shard: together no more than is published well within a lease.

    What is still unpublished when its lease ends is popped, and published, once more.
    """
    return max(1, min(BATCH, MOST_A_TICK // max(1, shards)))


def _pause(dues: Sequence[Due]) -> float:
    """Until the next run is due, but at most IDLE_S: what is pushed meanwhile must not wait longer."""
    waits = [(due.next_due - due.now).total_seconds() for due in dues if due.next_due is not None]
    return max(0.0, min([IDLE_S, *waits]))
