"""One run in a whole system of which nothing is real but what decides.

Time is a number. Redis is a dictionary on which the product's scripts run (simulated_redis.py), the
database is one row, the broker is lists, an engine is a dictionary of containers. In between, the product's
own code decides: ``fold`` what events make of the row, ``judge`` what the sweep does, ``Window`` and
``Claims`` what is in Redis.
Each method is a moment in which its process cannot die; between two of them it can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from beat.sweeper import GRACE as SWEEP_GRACE
from beat.sweeper import OverdueRow, Verdict, is_copy, judge, left_in_queue, look_up, pushed_entry
from executions.claims import SENT_AGAIN_KEPT, forbid_start, heard, sent_again
from executions.engines import Engines, queues_of_engines
from executions.entries import Entry, Flag
from executions.events import Event, decode, encode_queued
from executions.folding import Context, Run, fold
from executions.freshness import FRESH_S
from executions.ids import execution_id
from executions.pools import Pools
from executions.runspecs import Spec
from executions.states import OUTCOMES, TERMINAL, EventType, State, Trigger
from executions.transitions import Asked, began_unwanted, second_starts, waits_anew
from executions.window import SLACK, Window
from executions.worker.assignments import message_body
from scheduler_project.kernel.clock import EPOCH, from_millis
from tests.unit.histories.parts import (
    DISPATCH_LEASE,
    ENGINE_WAIT,
    ENQUEUE_TIMEOUT,
    GRACE,
    MS,
    RUN_LEASE,
    TIMES,
    TIMING,
    WINDOW,
    Dispatch,
    Message,
    S,
)
from tests.unit.histories.simulated_redis import SimulatedRedis, SimulatedStore

JOB = UUID("019ad27d-3400-7003-8000-000000000001")
SHARD = 3
START_MS = 1_796_000_000_000
RUNS = "runs"


class System:
    """The beat's, the recorder's and the users' side; workers.py has the other.

    ``served``: whether a worker takes from its queue. ``kept``: how long its outcome keeps messages out.
    ``trigger``: a scheduled run that nothing could start in time is a misfire, and skipped here.
    """

    def __init__(self, retries: int, pause_s: float, trigger: Trigger, due_in: timedelta) -> None:
        self.redis = SimulatedRedis(START_MS)
        self.store = SimulatedStore(self.redis)
        self.window = Window(self.store, GRACE)
        self.pools = Pools(self.store, RUN_LEASE)
        self.engines = Engines(self.store)
        due = self.now + due_in
        self.spec = _spec(retries, pause_s)
        self.trigger = trigger
        self.row = Run(execution_id(JOB, due, trigger, SHARD), State.WAITING, check_at=due)
        self.cancel_requested_at: datetime | None = None
        self.queues: dict[str, list[Message]] = defaultdict(list)
        self.events: list[bytes] = []
        self.dispatches: list[Dispatch] = []
        self.sweeps: dict[OverdueRow, datetime] = {}
        self.cancels: list[Asked] = []
        self.started_again: list[Event] = []
        self.heard_at: dict[int, datetime] = {}
        self.kept = 2 * ENQUEUE_TIMEOUT
        self.served = True

    @property
    def now(self) -> datetime:
        return from_millis(self.redis.now)

    @property
    def live(self) -> bool:
        return self.row.state not in TERMINAL

    @property
    def specs(self) -> dict[UUID, bytes]:
        return {self.spec.id: self.spec.canonical}

    def entry(self, flags: Flag = Flag.NONE, attempt: int = 0, due: datetime | None = None) -> Entry:
        due = due or self.row.check_at
        assert due is not None
        return Entry(
            execution_id=self.row.id,
            spec_id=self.spec.id,
            attempt=attempt or self.row.attempt,
            due=due,
            flags=flags,
        )

    # The beat.

    def load(self) -> None:
        """``Loader.run_once`` of one shard."""
        mark = self.window.loaded_until([SHARD])[SHARD]
        after, until = max(mark or EPOCH, self.now - GRACE), self.now + WINDOW
        due = self.row.check_at
        if self.row.state is State.WAITING and self.row.queued_at is None and due and after < due <= until:
            self.window.add([self.entry()], self.specs)
        self.window.mark_loaded([SHARD], until)

    def pop(self) -> None:
        (due,) = self.window.pop([SHARD], DISPATCH_LEASE, 10)
        until = self.redis.now + DISPATCH_LEASE // MS
        self.dispatches += [Dispatch(run, until) for run in due.runs]

    def write(self, dispatch: Dispatch) -> None:
        """The broker has it, and has not said so. A beat that was stalled for a lease leaves it to others."""
        if self.redis.now >= dispatch.until:
            self.dispatches.remove(dispatch)
            return
        run, queue = dispatch.run, RUNS
        if run.flags & Flag.REATTACH:
            key = run.execution_id, run.attempt
            queue = queues_of_engines(self.store, [key], self.now, ENGINE_WAIT).get(key, RUNS)
        body = message_body(run, self.spec.canonical, self.now)
        self.queues[queue].append(Message(queue, body))
        dispatch.written = True

    def confirm(self, dispatch: Dispatch, *, dies: bool = False) -> None:
        """``dies``: before it says JOB_QUEUED."""
        self.dispatches.remove(dispatch)
        run = dispatch.run
        self.window.confirm([run], self.now, ENQUEUE_TIMEOUT)
        if not dies:
            self.events.append(encode_queued([(run.text_id, run.attempt, run.generation)], self.now))

    def dispatch(self, *, dies: bool = False) -> None:
        """A beat works in one go. ``dies``: before it hears that the broker has what it has written."""
        self.load()
        self.pop()
        for dispatch in list(self.dispatches):
            if not dispatch.written:
                self.write(dispatch)
            if dispatch in self.dispatches and not dies:
                self.confirm(dispatch)
        if dies:
            self.dispatches.clear()

    def look(self) -> None:
        """The sweep reads what is overdue; what it does follows, maybe much later."""
        row = self.row
        if row.check_at is None or row.check_at > self.now - SWEEP_GRACE:
            return
        unsent = (
            self.trigger is Trigger.SCHEDULE
            and row.attempt == 1
            and row.queued_at is None
            and row.state is State.WAITING
        )
        seen = OverdueRow(
            row.id,
            self.spec.id,
            row.attempt,
            row.check_at,
            row.generation,
            row.state,
            self.cancel_requested_at,
            JOB,
            row.check_at,
            unsent,
            row.queued_at,
        )
        self.sweeps[seen] = self.now

    def judge(self, seen: OverdueRow, *, dies: bool = False) -> None:
        """``Sweeper._sweep`` of one row. ``dies``: when the next look is noted, and nothing else."""
        read_at = self.sweeps.pop(seen)
        (known,) = look_up(self.window, self.pools, [seen], TIMES)
        verdict = judge(seen, known.claim, known.place, self.now, TIMES, known.left)
        if is_copy(seen, verdict) and not self.served:
            verdict = left_in_queue(verdict, self.now, TIMES)
        if verdict.next_check is not None and self.row.check_at == seen.check_at:
            self.row = replace(self.row, check_at=verdict.next_check)
        if not dies and self.now - read_at <= FRESH_S * S:
            self._carry_out(seen, verdict)

    def _carry_out(self, seen: OverdueRow, verdict: Verdict) -> None:
        if verdict.push is not None:
            self.send_again()
            self.window.add([pushed_entry(seen, verdict.push, self.now, TIMES)], self.specs)
        if verdict.forbid:
            self.window.forbid(seen.id)
        if verdict.end and forbid_start(self.store, seen.id, seen.attempt, site_counts=False):
            self._end_unstarted(seen.attempt)
        if verdict.repeat:
            self.events.append(verdict.repeat)
        if verdict.missed and self._is_unsent(seen):
            self._commit([self._said(EventType.SKIPPED, 1, "skipped_misfire")])
            self.window.forbid(seen.id)

    def send_again(self) -> None:
        sent_again(self.store, [self.row.id])
        self.kept = SENT_AGAIN_KEPT

    def _is_unsent(self, seen: OverdueRow) -> bool:
        """The guard of the query ``skip_missed``."""
        return self.row.state is State.WAITING and self.row.queued_at is None and self.row.attempt == 1

    # The recorder.

    def record(self, messages: Sequence[bytes], *, dies: bool = False) -> None:
        """``dies``: after the commit, so that all of it comes again."""
        events = [event for body in messages for event in decode(body)]
        entries, unwanted = self._commit(events)
        if dies:
            return
        self._push_due_soon(entries)
        if unwanted:
            self.window.forbid(self.row.id)
        ended = {event.attempt for event in events if event.type in OUTCOMES}
        heard(self.store, [(self.row.id, attempt) for attempt in ended], 2 * ENQUEUE_TIMEOUT)
        for attempt in ended:
            self.heard_at.setdefault(attempt, self.now)
        for body in messages:
            self.events.remove(body)

    def _commit(self, events: Sequence[Event]) -> tuple[list[Entry], bool]:
        before = self.row
        self.row, _ = fold(before, events, Context(self.spec.retry_policy, TIMING, self.now))
        self.started_again += second_starts(before, events)
        unwanted = any(began_unwanted(before, event) for event in events)
        return [self.entry()] if waits_anew(before, self.row) else [], unwanted

    def _push_due_soon(self, entries: Sequence[Entry]) -> None:
        soon = [entry for entry in entries if entry.due <= self.now + WINDOW + SLACK]
        self.window.add(soon, self.specs)

    # A user.

    def ask_to_stop(self) -> None:
        """The query ``request_cancel``; what ``cancel_execution`` does then follows, if it does not die."""
        row = self.row
        waits = row.state is State.WAITING and row.check_at is not None
        soon = row.check_at is not None and row.check_at <= self.now + WINDOW + SLACK
        underway = waits and (row.queued_at is not None or soon)
        self.cancel_requested_at = self.now
        check_at = min(row.check_at, self.now) if underway and row.check_at else row.check_at
        self.row = replace(row, cancel_requested=True, reason="", message="", check_at=check_at)
        self.cancels.append(Asked(row.state, row.attempt, underway))

    def stop(self, asked: Asked) -> None:
        self.cancels.remove(asked)
        if asked.state is State.ACTIVE:
            self.window.forbid(self.row.id)
            return
        free = forbid_start(self.store, self.row.id, asked.attempt)
        if free and not self._end_unstarted(asked.attempt) and self.live:
            self.ask_to_stop()

    def _end_unstarted(self, attempt: int) -> bool:
        before = self.row
        if before.state is State.ACTIVE:
            return False
        entries, _ = self._commit([self._said(EventType.CANCELLED, attempt, "user")])
        self._push_due_soon(entries)
        self.window.forbid(before.id)
        return self.row != before

    def _said(self, kind: EventType, attempt: int, reason: str) -> Event:
        return Event(type=kind, execution_id=self.row.id, attempt=attempt, at=self.now, reason=reason)


def _spec(retries: int, pause_s: float) -> Spec:
    return Spec(
        job_id=str(JOB),
        job_name="one",
        owner="team",
        owner_id=1,
        type="Script",
        command="true",
        schedule={},
        retries=retries,
        retry_delay_s=pause_s,
    )
