"""A bare Celery worker: the most that Celery takes off the broker here, for a rate to compare ours with.

    celery -A benchmarks.bare_celery worker

Its tasks do nothing but count themselves; their messages are acknowledged late, as those of runs, and they
have no result. When ``EXPECTED`` have run, it says so in its log.
"""

from __future__ import annotations

import itertools
import os
import sys

from celery import Celery
from kombu import Connection, Queue

from benchmarks.clocks import wait_for
from scheduler_project.kernel.clock import monotonic
from scheduler_project.places.processes import BIN, Process
from tests.system import System

QUEUE = "bare"
EXPECTED = int(os.environ.get("BARE_EXPECTED", "0"))
_SAYS = "all have run"
_WITHIN_S = 120.0
_count = itertools.count(1)
_began: list[float] = []

app = Celery("bare", broker=os.environ.get("BROKER_URL"))
app.conf.update(
    task_default_queue=QUEUE,
    task_queues=[Queue(QUEUE, durable=True, queue_arguments={"x-queue-type": "quorum"})],
    task_acks_late=True,
    task_ignore_result=True,
    worker_pool="threads",
    worker_concurrency=8,
    worker_detect_quorum_queues=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="nothing")
def nothing() -> None:
    number = next(_count)
    if number == 1:
        _began.append(monotonic())
    if number == EXPECTED:
        sys.stderr.write(f"{_SAYS} after {monotonic() - _began[0]:.3f} s\n")


def drain_bare(system: System, number: int) -> float:
    """Seconds from the first to the last of ``number`` tasks that are in the queue when the worker starts."""
    env = {**system.env, "BARE_EXPECTED": str(number)}
    with Connection(env["BROKER_URL"]) as connection, app.amqp.Producer(connection) as producer:
        for _ in range(number):
            nothing.apply_async(producer=producer)
    command = [
        str(BIN / "celery"),
        "-A",
        "benchmarks.bare_celery",
        "worker",
        "-l",
        "WARNING",
        "-n",
        "bare@%h",
    ]
    worker = Process("worker98", command, env, system.home / f"worker98-{monotonic()}.log")
    try:
        wait_for(lambda: _SAYS in worker.text(), f"{number} bare tasks have run", _WITHIN_S)
    finally:
        worker.kill()
    return float(worker.text().partition(f"{_SAYS} after ")[2].split()[0])
