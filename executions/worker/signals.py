"""Celery's signals become what the worker does and the events that it publishes.

task_prerun   claim, JOB_STARTED, acknowledge (or give back what cannot be claimed here)
task_success  JOB_COMPLETED
task_failure  JOB_FAILED, JOB_CANCELLED or JOB_LOST, by the exception
task_revoked  JOB_CANCELLED (``celery control revoke``, before it began)
task_postrun  the slot is free
"""

from __future__ import annotations

from typing import Any

from celery import signals
from celery.exceptions import Ignore

from containers.outcome import Reason
from containers.supervise import Detached, NotLaunched
from executions.events import Event
from executions.states import EventType
from executions.worker.assignments import TASK
from executions.worker.attempts import Ended, Held, Stopping, type_of
from executions.worker.lifecycle import RunWorker
from executions.worker.process import current_worker, let_go
from executions.worker.room import Verdict
from executions.worker.slots import RunRequest, deliveries
from scheduler_project.kernel.clock import utcnow


class RunFailed(Exception):
    """The run's command failed, or could not be started."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)  # Celery pickles exceptions: they must be made of their arguments
        self.ended = ended

    def __str__(self) -> str:
        return f"{self.ended.reason}: {self.ended.message}"


class RunCancelled(RunFailed):
    """The run was stopped because somebody asked for it."""


_held: dict[
    int, tuple[RunWorker, Held]
] = {}  # by the identity of the task's request: the same run may be delivered twice


_begun: dict[int, RunRequest] = {}  # by the same


def run_held(request: Any) -> Ended:
    """The task's body: run what task_prerun claimed. Ignore where there is nothing to run or report."""
    if id(request) not in _held:
        raise Ignore
    worker, held = _held[id(request)]
    try:
        ended = worker.execute(held)
    except Detached as detached:
        worker.hand_over(held, begun=not isinstance(detached, NotLaunched))
        raise Ignore from None
    if ended.succeeded:
        return ended
    raise RunCancelled(ended) if ended.reason == Reason.CANCELLED else RunFailed(ended)


@signals.task_prerun.connect(weak=False)
def begin(task_id: str, task: Any, **_: Any) -> None:
    worker = current_worker()
    if task.name != TASK or worker is None:
        return
    delivery = deliveries.begin(task_id)
    _begun[id(task.request)] = delivery
    try:
        held = _begin(worker, delivery)
    except Stopping:
        delivery.give_back()
    except Exception:
        delivery.give_back()
        raise
    else:
        if held is not None:
            _held[id(task.request)] = worker, held
    delivery.acknowledge()


def _begin(worker: RunWorker, delivery: RunRequest) -> Held | None:
    """Stopping: it is to be left to others, or there is no room for it yet."""
    given = delivery.assignment
    if delivery.verdict is Verdict.NEVER:
        worker.pass_on(given, delivery.asked)
        return None
    if delivery.verdict is Verdict.AWAITED:
        within_s = worker.look_at(given, delivery.asked)
        if within_s is None:
            return None
        if not delivery.move_in(within_s):
            raise Stopping
    return worker.begin(given)


@signals.task_success.connect(weak=False)
def succeed(sender: Any, result: Any, **_: Any) -> None:
    if (found := _held.get(id(sender.request))) is not None:
        worker, held = found
        worker.report(held, EventType.COMPLETED, result)


@signals.task_failure.connect(weak=False)
def fail(sender: Any, exception: BaseException, **_: Any) -> None:
    if (found := _held.get(id(sender.request))) is None:
        return
    worker, held = found
    if isinstance(exception, RunFailed):
        worker.report(held, type_of(exception.ended), exception.ended)
    else:
        # The run did not fail: its worker did, or its engine never answered.
        ended = Ended("lost", f"{type(exception).__name__}: {exception}", gone=False)
        worker.report(held, EventType.LOST, ended)


@signals.task_revoked.connect(weak=False)
def revoke(request: Any, **_: Any) -> None:
    worker = current_worker()
    if worker is None or request.name != TASK:
        return
    delivery = deliveries.begin(request.id)
    delivery.free()
    given = delivery.assignment
    worker.outbox.put(
        Event(
            type=EventType.CANCELLED,
            execution_id=given.execution_id,
            attempt=given.attempt,
            at=utcnow(),
            worker=worker.name,
            reason=str(Reason.CANCELLED),
            message="revoked before it began",
        )
    )


@signals.task_postrun.connect(weak=False)
def release(task: Any, **_: Any) -> None:
    worker = current_worker()
    if task.name == TASK and worker is not None:
        _held.pop(id(task.request), None)
        if (delivery := _begun.pop(id(task.request), None)) is not None:
            delivery.free()


@signals.worker_shutting_down.connect(weak=False)
def hand_over_runs(**_: Any) -> None:
    """A signal, the first of the ways to be told to end (consumer.py hears of the others)."""
    let_go()


@signals.worker_shutdown.connect(weak=False)
def close(**_: Any) -> None:
    if (worker := current_worker()) is not None:
        worker.close()
