"""The dispatcher: one tick pops what is due, publishes it, and clears what the broker has confirmed.

    pop (Lua, leases) ─▶ publish in batches ─▶ confirmed ─▶ clear from in-flight, note as sent
                                           └▶ not confirmed: the lease ends and it is popped again

What has begun already goes to the queue of the engine that its container is on.

A beat that was stalled for a lease between pop and publish publishes nothing of it: others have.
While more is due, the broker works on what this tick has written and the tick clears what the one
before wrote. While the broker is away or blocked nothing is popped. The database is not touched.
JOB_QUEUED travels as one message a batch; should it be lost, the run's own JOB_STARTED says the same.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from executions.bus.batches import BrokerBlocked, RunMessage, Sending
from executions.bus.connection import BusUnavailable
from executions.bus.publishing import EventPublisher, RunPublisher
from executions.engines import queues_of_engines
from executions.entries import Flag, Popped
from executions.events import encode_queued
from executions.priorities import DEFAULT_QUEUE, Priority, broker_queue
from executions.window import Due, Window
from executions.worker.assignments import message_body, task_id
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

BATCH = 1000
MOST_A_TICK = 2000
IDLE_S = 0.05
UNAVAILABLE_S = 0.5
SPECS_KEPT = 20_000
_REATTACH = int(Flag.REATTACH)


@dataclass(frozen=True, slots=True)
class DispatchTimes:
    """``lease``: how long a popped run is ours; ``sent_kept``: how long a sent one is remembered;
    ``engine_wait``: for how long a run that is to be taken up waits for a worker of its engine."""

    lease: timedelta
    sent_kept: timedelta
    engine_wait: timedelta


@dataclass(frozen=True, slots=True)
class _Batch:
    """Runs that were popped and published together, and what tells their fate."""

    runs: Sequence[Popped]
    now: datetime
    sending: Sending


class Dispatcher:
    """``shards``: those that it may take runs from right now."""

    def __init__(
        self,
        window: Window,
        shards: Callable[[], list[int]],
        runs: RunPublisher,
        events: EventPublisher,
        times: DispatchTimes,
        want_spec: Callable[[int, bytes], None],
    ) -> None:
        self._window = window
        self._shards = shards
        self._runs = runs
        self._events = events
        self._times = times
        self._want_spec = want_spec
        self._specs: OrderedDict[bytes, _Spec] = OrderedDict()
        self._written: deque[_Batch] = deque()

    def tick(self) -> float:
        """Dispatch what is due; the seconds until the next tick (0: more is due already)."""
        try:
            self._runs.prepare()  # what could not be published is not popped
            shards, asked_at = self._shards(), monotonic()
            dues = self._window.pop(shards, self._times.lease, _share(len(shards)))
            pause = _pause(dues)
            written = self._write(dues, until=asked_at + self._times.lease.total_seconds())
            self._settle(keep=0 if pause else written)
        except RetryableError as error:
            logger.warning("dispatch_waits", extra={"error": error.message})
            return UNAVAILABLE_S
        return pause

    def close(self) -> None:
        """What was written last is settled, so that no other beat sends it again."""
        try:
            self._settle(keep=0)
        except RetryableError as error:
            logger.warning("dispatch_ends", extra={"error": error.message, "unsettled": len(self._written)})
        self._runs.close()
        self._events.close()

    def _write(self, dues: Sequence[Due], until: float) -> int:
        """Publish all, a batch at a time, while they are ours; how many batches."""
        self._forget_old_specs()
        self._fetch_specs(dues)
        runs = [run for due in dues for run in due.runs if self._has_spec(run)]
        batches = [runs[start : start + BATCH] for start in range(0, len(runs), BATCH)]
        for number, batch in enumerate(batches):
            messages = self._messages(batch, dues[0].now)
            if monotonic() >= until:
                logger.warning("stalled_runs_left", extra={"runs": len(runs) - number * BATCH})
                return number
            self._written.append(_Batch(batch, dues[0].now, self._runs.send(messages)))
        return len(batches)

    def _settle(self, keep: int) -> None:
        """Clear and note what the broker has confirmed, but for the ``keep`` batches written last."""
        failure: BusUnavailable | None = None
        while len(self._written) > keep:
            batch = self._written[0]
            try:
                refused = batch.sending.refused()
            except BrokerBlocked:
                raise  # what it has taken it confirms when it works again
            except BusUnavailable as error:
                failure = error  # nobody knows what arrived: all of it goes out after its lease
                self._written.popleft()
                continue
            self._written.popleft()
            logger.info("runs_sent", extra={"runs": len(batch.runs) - len(refused), "refused": len(refused)})
            self._clear([run for at, run in enumerate(batch.runs) if at not in refused], batch.now)
        if failure is not None:
            raise failure

    def _clear(self, sent: Sequence[Popped], now: datetime) -> None:
        if sent:
            self._window.confirm(sent, now, self._times.sent_kept)
            queued = [(run.text_id, run.attempt, run.generation) for run in sent]
            self._events.publish(encode_queued(queued, now))

    def _messages(self, runs: Sequence[Popped], now: datetime) -> list[RunMessage]:
        engines = self._engines_of([run for run in runs if run.flags & _REATTACH], now)
        return [self._message(run, now, engines) for run in runs]

    def _engines_of(self, begun: Sequence[Popped], now: datetime) -> dict[tuple[UUID, int], str]:
        attempts = [(run.execution_id, run.attempt) for run in begun]
        return queues_of_engines(self._window.store, attempts, now, self._times.engine_wait)

    def _message(self, run: Popped, now: datetime, engines: Mapping[tuple[UUID, int], str]) -> RunMessage:
        spec = self._specs[run.spec_head]
        queue = spec.queue
        if run.flags & _REATTACH:
            queue = engines.get((run.execution_id, run.attempt), queue)
        body = message_body(run, spec.body, now)
        return RunMessage(task_id(run.text_id, run.attempt), body, queue)

    def _fetch_specs(self, dues: Sequence[Due]) -> None:
        known = self._specs
        unknown = {
            due.shard: {run.spec_head for run in due.runs if run.spec_head not in known} for due in dues
        }
        found = self._window.specs(unknown)
        for head, body in found.items():
            try:
                known[head] = _Spec(body, _queue_of(body))
            except (ValueError, AttributeError, TypeError) as error:  # as if Redis had lost it
                logger.warning("runspec_unreadable", extra={"spec": head.hex(), "error": str(error)})

    def _forget_old_specs(self) -> None:
        """Between ticks only: a batch needs all of its own until it is sent."""
        while len(self._specs) > SPECS_KEPT:
            self._specs.popitem(last=False)

    def _has_spec(self, run: Popped) -> bool:
        if run.spec_head in self._specs:
            return True
        self._want_spec(run.shard, run.spec_head)  # it stays in flight until its lease ends
        return False


@dataclass(frozen=True, slots=True)
class _Spec:
    """The JSON of a RunSpec, and the broker's queue that its runs go to."""

    body: bytes
    queue: str


def _queue_of(body: bytes) -> str:
    spec = json.loads(body)
    return broker_queue(spec.get("queue", DEFAULT_QUEUE), spec.get("priority", Priority.NORMAL))


def _share(shards: int) -> int:
    """How many to pop of each shard: together no more than is published well within a lease.

    What is still unpublished when its lease ends is popped, and published, once more.
    """
    return max(1, min(BATCH, MOST_A_TICK // max(1, shards)))


def _pause(dues: Sequence[Due]) -> float:
    """Until the next run is due, but at most IDLE_S: what is pushed meanwhile must not wait longer."""
    waits = [(due.next_due - due.now).total_seconds() for due in dues if due.next_due is not None]
    return max(0.0, min([IDLE_S, *waits]))
