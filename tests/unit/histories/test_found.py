"""Histories that went wrong once."""

from __future__ import annotations

from datetime import timedelta

from executions.states import State, Trigger
from tests.unit.histories.parts import ENQUEUE_TIMEOUT, S, Stage, Worker
from tests.unit.histories.settling import act, settle
from tests.unit.histories.system import RUNS, System
from tests.unit.histories.workers import Workers


def begun(trigger: Trigger, engines: str) -> tuple[System, Workers]:
    """A run that nobody has recorded yet, in the queue."""
    system = System(0, 0.0, trigger, 0 * S)
    system.dispatch()
    assert system.queues[RUNS] and system.row.queued_at is None
    return system, Workers(system, engines)


def takes(workers: Workers, worker: Worker) -> Stage | None:
    """Takes the next message and goes as far as it can; None: it was not to be run."""
    workers.take(worker, RUNS)
    (hand,) = worker.hands
    while hand in worker.hands and workers.step(worker, hand):
        pass
    return hand.stage if hand in worker.hands else None


def passes(system: System, workers: Workers, length: timedelta, without: str) -> None:
    until = system.now + length
    while system.now < until:
        workers.pass_time(5 * S)
        act(system, workers, None, without)


def test_a_run_that_was_skipped_as_missed_does_not_start_from_the_queue() -> None:
    """Neither a worker nor a recorder was there for longer than the enqueue time-out."""
    system, workers = begun(Trigger.SCHEDULE, "a")
    workers.pass_time(ENQUEUE_TIMEOUT + S)
    system.look()
    system.judge(next(iter(system.sweeps)))
    assert system.row.state is State.CANCELLED
    assert takes(workers, workers.workers[0]) is None
    settle(system, workers, 0)
    assert workers.started == []


def test_a_run_whose_start_nobody_has_recorded_is_not_started_on_another_engine() -> None:
    """Its worker dies, and no recorder is there for longer than the enqueue time-out."""
    for trigger in (Trigger.MANUAL, Trigger.SCHEDULE):
        system, workers = begun(trigger, "ba")
        worker = workers.workers[1]
        assert takes(workers, worker) is Stage.WATCHING
        workers.kill(worker)
        workers.start(worker)
        passes(system, workers, ENQUEUE_TIMEOUT + 20 * S, "recorder")
        settle(system, workers, 0)
        assert (system.row.state, workers.started) == (State.COMPLETED_NORMALLY, [1])


def test_messages_of_a_run_that_has_ended_are_kept_out_as_long_as_their_queue_is() -> None:
    """It waits 25 minutes, is sent again after 5, 10 and 20; the last message waits as long as the first."""
    system, workers = begun(Trigger.MANUAL, "a")
    passes(system, workers, 1500 * S, "worker")
    assert len(system.queues[RUNS]) == 4
    (worker,) = workers.workers
    assert takes(workers, worker) is Stage.WATCHING
    workers.containers["a", 1] = 0
    (hand,) = worker.hands
    while hand in worker.hands:
        workers.step(worker, hand)
    passes(system, workers, 1500 * S, "worker")
    assert system.row.state is State.COMPLETED_NORMALLY
    while system.queues[RUNS]:
        assert takes(workers, worker) is None
    assert workers.started == [1]
