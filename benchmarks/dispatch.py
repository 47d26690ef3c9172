"""Dispatch: ten thousand runs that are due in the same second, from one beat, to a quorum queue of RabbitMQ.

A real beat, over PostgreSQL, Redis and RabbitMQ; nobody consumes. The runs belong to ten thousand jobs, each
with a RunSpec of its own. In each round they are put into the window, and the beat waits for their second.

* ``due_to_confirmed_s``: from the due time to the last confirm, as the beat's log says it.
* ``beat_cpu_us_per_run``: what all threads of the beat computed meanwhile, its background work included.
* ``limit_ratio``: our rate over that of a bare publisher (bare.py) of the same messages, in the same round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kombu import Connection

from benchmarks.bare import publish_bare
from benchmarks.clocks import cpu_s, sleep_until, wait_for
from benchmarks.figures import Figure, progress
from executions.bus.batches import RunMessage, TaskHeaders
from executions.bus.topology import AUDITOR, RECORDER, RUNS, declare, event_queue, work_queue
from executions.worker.assignments import TASK
from scheduler_project.kernel.clock import utcnow
from tests.outage import Outage
from tests.system import Process, System, running_system

NUMBER = 10_000
LEADS = [timedelta(seconds=seconds) for seconds in (12, 30, 120)]
SETTLING = timedelta(seconds=1)
_SENT = re.compile(r"^(\S+Z) \w+ beat\.dispatcher runs_sent runs=(\d+)", re.MULTILINE)
_PLAN = """
from datetime import datetime
from executions.scheduling import push_due_soon
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import occurrence
from scheduler_project.kernel.clock import utcnow

jobs = list(Job.objects.all())
for start in range(0, len(jobs), 2000):
    runs = [occurrence(job, datetime.fromisoformat(due)) for job in jobs[start:start + 2000]]
    push_due_soon(insert(runs), utcnow())
result = len(jobs)
"""


@dataclass(frozen=True, slots=True)
class Round:
    confirmed_s: float
    cpu_us: float
    bare_s: float

    @property
    def ratio(self) -> float:
        return self.bare_s / self.confirmed_s


def measure(rounds: int) -> list[Figure]:
    with TemporaryDirectory() as home, running_system(Path(home)) as system:
        # Their own runs are due in a year: only the jobs and their RunSpecs are wanted.
        Outage(("latest",), NUMBER, "0 0 1 1 *", utcnow() + timedelta(days=365)).leave_behind(system)
        beat = system.start("beat")
        system.wait_until_ready()
        done = [_round(system, beat, number) for number in range(rounds + 1)][1:]  # the first warms up
    return [
        Figure("dispatch", "due_to_confirmed_s", "s", [one.confirmed_s for one in done]),
        Figure("dispatch", "beat_cpu_us_per_run", "us", [one.cpu_us for one in done]),
        Figure("dispatch", "limit_ratio", "", [one.ratio for one in done]),
    ]


def _round(system: System, beat: Process, number: int) -> Round:
    system.query("DELETE FROM executions_execution RETURNING 1")
    due = plan(system, NUMBER)
    empty(system)
    sleep_until(due - timedelta(milliseconds=50))
    seen, before = len(beat.text()), cpu_s(beat.pid)
    confirmed_at = _wait_for_all(beat, seen)
    cpu_us = (cpu_s(beat.pid) - before) * 1e6 / NUMBER
    messages = _copies(system, NUMBER)
    empty(system)
    bare_s = publish_bare(system.env["BROKER_URL"], messages, TaskHeaders(TASK, "bare"))
    done = Round((confirmed_at - due).total_seconds(), cpu_us, bare_s)
    progress(f"dispatch, round {number}: {done}")
    return done


def plan(system: System, number: int) -> datetime:
    """Put a run of each job into the window; when they are due. On a busy machine it takes a second try."""
    for lead in LEADS:
        due = (utcnow() + lead).replace(microsecond=0)
        system.console.run(_PLAN, due=due.isoformat())
        if utcnow() < due - SETTLING:
            return due
        system.query("DELETE FROM executions_execution RETURNING 1")
    raise RuntimeError(f"planning {number} runs took longer than {LEADS[-1]}: the machine is too busy")


def _wait_for_all(beat: Process, seen: int) -> datetime:
    """When the last of the runs was confirmed, by the beat's own log behind its first ``seen`` characters."""

    def lines() -> list[tuple[str, str]]:
        return _SENT.findall(beat.text()[seen:])

    wait_for(lambda: sum(int(runs) for _, runs in lines()) >= NUMBER, f"{NUMBER} runs are sent", 60, 0.02)
    return datetime.fromisoformat(lines()[-1][0])


def _copies(system: System, number: int) -> list[RunMessage]:
    """As many messages as were sent, each like the one that is first in the queue, with an id of its own."""
    with Connection(system.env["BROKER_URL"]) as connection, connection.channel() as channel:
        first: Any = work_queue(RUNS).bind(channel).get(no_ack=True)
    body, length = first.body.encode(), len(first.headers["id"])
    return [RunMessage(f"{n:0{length}}", body) for n in range(number)]


def empty(system: System) -> None:
    with Connection(system.env["BROKER_URL"]) as connection:
        for queue in (work_queue(RUNS), event_queue(RECORDER), event_queue(AUDITOR)):
            with connection.channel() as channel:
                declare(queue, channel)
                queue.bind(channel).purge()
