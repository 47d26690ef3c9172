"""Thousands of histories of one run, with crashes between any two steps: nothing is lost.

A rule is a step of one process, or a fault. Each history has some kinds of faults and not others. At its
end the faults stop, everybody acts in turn, and the run must come to its end.

PUNCTUAL_HISTORIES=20000 makes so many, other ones each time.
"""

from __future__ import annotations

import os
from datetime import timedelta

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from executions.folding import LOST_LIMIT
from executions.states import TERMINAL, State, Trigger
from tests.unit.histories.parts import S, Worker
from tests.unit.histories.settling import act, settle
from tests.unit.histories.system import System
from tests.unit.histories.workers import Workers

FAULTS = ("kill", "stall", "beat", "recorder", "redis", "host", "lossy", "cancel", "late")
MOMENTS = [timedelta(milliseconds=100), S, 6 * S, 11 * S, 25 * S, 65 * S, 130 * S, 310 * S]
LONG = [*MOMENTS, 700 * S, 1500 * S]
many = st.integers(0, 5)


class Histories(RuleBasedStateMachine):
    @initialize(
        retries=st.sampled_from([(0, 0.0), (1, 0.0), (2, 20.0), (1, 900.0)]),
        trigger=st.sampled_from([Trigger.MANUAL, Trigger.SCHEDULE]),
        due_in=st.sampled_from([0 * S, 10 * S, 400 * S]),
        engines=st.sampled_from(["aa", "ab", "aab"]),
        faults=st.sets(st.sampled_from(FAULTS), min_size=1),
        code=st.sampled_from([0, 3]),
    )
    def begin(
        self,
        retries: tuple[int, float],
        trigger: Trigger,
        due_in: timedelta,
        engines: str,
        faults: set[str],
        code: int,
    ) -> None:
        """``retries``: how many, and the pause before, s. ``code``: with which containers end afterwards."""
        self.system = System(*retries, trigger, due_in)
        self.workers = Workers(self.system, engines)
        self.faults = faults
        self.code = code
        self.seen = self.system.row

    def has(self, fault: str) -> bool:
        return fault in self.faults

    @property
    def acting(self) -> list[Worker]:
        return [worker for worker in self.workers.workers if worker.acts]

    # The beat.

    @rule()
    def a_beat_loads(self) -> None:
        self.system.load()

    @rule()
    def a_beat_pops(self) -> None:
        self.system.pop()

    @precondition(lambda self: self.system.dispatches)
    @rule(at=many, dies=st.booleans())
    def a_beat_goes_on(self, at: int, dies: bool) -> None:
        dispatch = self.system.dispatches[at % len(self.system.dispatches)]
        if dispatch.written:
            self.system.confirm(dispatch, dies=dies and self.has("beat"))
        else:
            self.system.write(dispatch)

    @rule()
    def a_beat_works(self) -> None:
        self.system.dispatch()

    @precondition(lambda self: self.has("beat") and self.system.dispatches)
    @rule(at=many)
    def a_beat_dies(self, at: int) -> None:
        self.system.dispatches.pop(at % len(self.system.dispatches))

    @precondition(lambda self: self.system.row.check_at and self.system.row.check_at < self.system.now)
    @rule(waits=st.booleans(), dies=st.booleans())
    def a_beat_sweeps(self, waits: bool, dies: bool) -> None:
        self.system.look()
        if not waits and self.system.sweeps:
            self.system.judge(list(self.system.sweeps)[-1], dies=dies and self.has("beat"))

    @precondition(lambda self: self.system.sweeps)
    @rule(at=many)
    def a_sweep_goes_on(self, at: int) -> None:
        self.system.judge(list(self.system.sweeps)[at % len(self.system.sweeps)])

    @rule(
        without=st.sampled_from(["", "beat", "worker", "recorder"]),
        code=st.sampled_from([None, 0, 3]),
        dies=st.booleans(),
    )
    def most_act(self, without: str, code: int | None, dies: bool) -> None:
        """What leads far in one step."""
        act(self.system, self.workers, code, without, beat_dies=dies and self.has("beat"))

    # Workers and their containers.

    @precondition(lambda self: any(map(self.workers.queues_of, self.acting)))
    @rule(at=many, which=many, steps=st.integers(0, 8))
    def a_worker_takes(self, at: int, which: int, steps: int) -> None:
        able = [worker for worker in self.acting if self.workers.queues_of(worker)]
        worker = able[at % len(able)]
        queues = self.workers.queues_of(worker)
        self.workers.take(worker, queues[which % len(queues)])
        self.go_on(worker, -1, steps)

    @precondition(lambda self: any(worker.hands for worker in self.acting))
    @rule(at=many, which=many, steps=st.integers(1, 8))
    def a_worker_goes_on(self, at: int, which: int, steps: int) -> None:
        able = [worker for worker in self.acting if worker.hands]
        worker = able[at % len(able)]
        self.go_on(worker, which % len(worker.hands), steps)

    def go_on(self, worker: Worker, which: int, steps: int) -> None:
        hand = worker.hands[which]
        for _ in range(steps):
            if hand not in worker.hands or not self.workers.step(worker, hand):
                return

    @precondition(lambda self: None in self.workers.containers.values())
    @rule(code=st.sampled_from([0, 3]), at=many)
    def a_container_ends(self, code: int, at: int) -> None:
        running = [key for key, ended in self.workers.containers.items() if ended is None]
        self.workers.containers[running[at % len(running)]] = code

    @precondition(lambda self: self.workers.containers and self.acting)
    @rule(at=many)
    def a_worker_reaps(self, at: int) -> None:
        self.workers.reap(self.acting[at % len(self.acting)])

    @precondition(lambda self: self.has("kill") and self.acting)
    @rule(at=many)
    def a_worker_is_killed(self, at: int) -> None:
        self.workers.kill(self.acting[at % len(self.acting)], loses=self.has("lossy"))

    @precondition(lambda self: self.has("kill") and self.acting)
    @rule(at=many)
    def a_worker_is_told_to_end(self, at: int) -> None:
        self.workers.end(self.acting[at % len(self.acting)])

    @precondition(lambda self: not all(worker.alive for worker in self.workers.workers))
    @rule(at=many)
    def a_worker_starts(self, at: int) -> None:
        dead = [worker for worker in self.workers.workers if not worker.alive]
        if (worker := dead[at % len(dead)]).engine not in self.workers.gone:
            self.workers.start(worker)

    @precondition(lambda self: self.has("stall") and self.acting)
    @rule(at=many)
    def a_worker_stalls(self, at: int) -> None:
        self.acting[at % len(self.acting)].stalled = True

    @precondition(lambda self: any(worker.stalled for worker in self.workers.workers))
    @rule()
    def a_worker_wakes(self) -> None:
        next(worker for worker in self.workers.workers if worker.stalled).stalled = False

    @precondition(lambda self: self.has("host"))
    @rule(engine=st.sampled_from("ab"), for_good=st.booleans())
    def a_host_is_lost(self, engine: str, for_good: bool) -> None:
        self.workers.lose_host(engine, for_good=for_good)

    # The recorder, users, Redis, time.

    @precondition(lambda self: self.system.events)
    @rule(data=st.data(), dies=st.booleans())
    def a_recorder_takes_some(self, data: st.DataObject, dies: bool) -> None:
        events = self.system.events
        picks = data.draw(st.lists(st.sampled_from(range(len(events))), min_size=1, max_size=4, unique=True))
        self.system.record([events[at] for at in picks], dies=dies and self.has("recorder"))

    @precondition(lambda self: self.has("lossy") and self.has("recorder") and self.system.events)
    @rule(at=many)
    def a_recorder_dies_with_a_delivery(self, at: int) -> None:
        self.system.events.pop(at % len(self.system.events))

    @precondition(lambda self: self.has("lossy") and any(self.system.queues.values()))
    @rule(at=many)
    def a_message_is_lost(self, at: int) -> None:
        full = [queue for queue in self.system.queues.values() if queue]
        full[at % len(full)].pop()

    @precondition(lambda self: self.has("cancel") and self.system.live)
    @rule(dies=st.booleans(), waits=st.booleans())
    def a_user_cancels(self, dies: bool, waits: bool) -> None:
        self.system.ask_to_stop()
        asked = self.system.cancels[-1]
        if dies:
            self.system.cancels.remove(asked)
        elif not waits:
            self.system.stop(asked)

    @precondition(lambda self: self.system.cancels)
    @rule()
    def a_cancel_goes_on(self) -> None:
        self.system.stop(self.system.cancels[0])

    @precondition(lambda self: self.has("redis"))
    @rule()
    def redis_loses_everything(self) -> None:
        self.workers.forgotten = True
        self.system.redis.forget()

    @rule(data=st.data())
    def time_passes(self, data: st.DataObject) -> None:
        self.workers.pass_time(data.draw(st.sampled_from(LONG if self.has("late") else MOMENTS)))

    # What holds at every moment.

    @invariant()
    def the_row_is_sound(self) -> None:
        if not hasattr(self, "system"):
            return
        before, row = self.seen, self.system.row
        assert row.attempt >= before.attempt
        assert before.state not in TERMINAL or (row.state, row.attempt) == (before.state, before.attempt)
        assert (row.check_at is not None) == (row.state in {State.WAITING, State.ACTIVE})
        assert (row.finished_at is not None) == (row.state in TERMINAL)
        retries = self.system.spec.retries
        assert row.failures <= retries + 1 and row.losses <= LOST_LIMIT + 1
        assert row.attempt <= 1 + retries + LOST_LIMIT
        skipped = row.reason == "skipped_misfire"
        assert not (skipped and self.workers.started) or self.workers.forgotten, (
            "it ran, and counts as missed"
        )
        self.seen = row

    def teardown(self) -> None:
        if not hasattr(self, "system"):
            return
        settle(self.system, self.workers, self.code)
        self.the_row_is_sound()
        for excuse in set(self.workers.excused):
            event(f"started again or too late: {excuse}")
        event(f"ends {self.system.row.state} ({self.system.row.reason})")


HISTORIES = int(os.environ.get("PUNCTUAL_HISTORIES", "0"))
Histories.TestCase.settings = settings(
    max_examples=HISTORIES or 1500,
    stateful_step_count=30,
    derandomize=not HISTORIES,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHistories = Histories.TestCase
