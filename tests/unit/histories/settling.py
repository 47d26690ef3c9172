"""The end of a history: faults stop, everybody acts in turn, time passes, and the run comes to its end."""

from __future__ import annotations

from datetime import timedelta

from beat.sweeper import GRACE
from tests.unit.histories.parts import MS, S, Worker
from tests.unit.histories.system import RUNS, System
from tests.unit.histories.workers import Workers

WITHIN = 3600 * S
"""Some time-outs one after the other; the pauses of retries come on top."""


def settle(system: System, workers: Workers, code: int) -> None:
    """``code``: with which containers end from now on."""
    for worker in list(workers.workers):
        worker.stalled = False
        if not worker.alive and worker.engine not in workers.gone:
            workers.start(worker)
    until = system.now + WITHIN + system.spec.retries * timedelta(seconds=system.spec.retry_delay_s)
    while system.live:
        assert system.now < until, f"the run is lost: {system.row}"
        act(system, workers, code)
    row, started = system.row, len(workers.started) - len(workers.excused)
    for _ in range(200):
        if not _is_busy(system, workers):
            break
        act(system, workers, code)
    assert not _is_busy(system, workers), "something goes on for ever"
    assert system.row.state is row.state
    assert len(workers.started) - len(workers.excused) == started, "what has ended is started again"


def act(
    system: System, workers: Workers, code: int | None, without: str = "", *, beat_dies: bool = False
) -> None:
    """All but one kind of process, each once; where nobody could do anything, time passes until somebody can.

    ``code``: with which containers end; None: they go on.
    """
    before = _traces(system, workers)
    while system.cancels:
        system.stop(system.cancels[0])
    if without != "beat":
        _beat(system, dies=beat_dies)
    for worker in workers.workers if without != "worker" else []:
        if worker.acts:
            _work(workers, worker, code)
    if system.events and without != "recorder":
        system.record(list(system.events))
    if _traces(system, workers) == before:
        workers.pass_time(_pause(system))


def _beat(system: System, *, dies: bool) -> None:
    system.dispatch(dies=dies)
    system.look()
    while system.sweeps:
        system.judge(next(iter(system.sweeps)))


def _work(workers: Workers, worker: Worker, code: int | None) -> None:
    for queue in workers.queues_of(worker):
        workers.take(worker, queue)
    for hand in list(worker.hands):
        while hand in worker.hands:
            if not workers.step(worker, hand):
                key = worker.engine, hand.given.attempt
                if code is None or workers.containers.get(key, 0) is not None:
                    break
                workers.containers[key] = code
    workers.reap(worker)


def _traces(system: System, workers: Workers) -> object:
    return (
        system.row,
        len(system.events),
        [len(queue) for queue in system.queues.values()],
        [len(worker.hands) for worker in workers.workers],
        len(workers.containers),
    )


def _pause(system: System) -> timedelta:
    moments = [moment - system.redis.now for moment in system.redis.moments()]
    if system.row.check_at is not None:
        moments.append((system.row.check_at + GRACE - system.now) // MS)
    return min([moment for moment in moments if moment > 0], default=10_000) * MS


def _is_busy(system: System, workers: Workers) -> bool:
    there = [key for key in workers.containers if key[0] not in workers.gone]
    waits = system.events or system.dispatches or system.queues[RUNS] or there
    return bool(waits or any(worker.hands for worker in workers.workers) or system.redis.moments())
