"""Celery tasks. A body is a call; what runs do is in executions/worker, maintenance in partitions.py."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.conf import settings

from executions.worker.assignments import TASK
from executions.worker.attempts import Ended
from executions.worker.signals import RunFailed, run_held
from scheduler_project.kernel.clock import utcnow


@shared_task(  # type: ignore[call-overload, untyped-decorator]
    name=TASK,
    bind=True,
    acks_late=True,
    ignore_result=True,
    throws=(RunFailed,),
    Request="executions.worker.slots:RunRequest",
)
def run(self: Any, **_: Any) -> Ended:
    """One attempt of one execution; task_prerun has claimed it."""
    return run_held(self.request)


@shared_task(name="maintenance.partitions")
def maintain_partitions() -> dict[str, list[str]]:
    """Make the partitions of the days ahead, drop what is past the retention time. Idempotent."""
    from executions.retention import keep_up

    return keep_up(utcnow(), ahead=settings.PUNCTUAL_PARTITIONS_AHEAD, retention=settings.PUNCTUAL_RETENTION)
