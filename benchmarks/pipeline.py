"""The whole system on this one machine: beat, worker, recorder and auditor, and a runtime that runs nothing.

Two thousand runs, each of a job of its own, are due in the same second. What a run costs is everything but
its command: planning, window, dispatch, Celery's task, claim, events, transitions, history, the next run.

* ``runs_per_s``: from their second until PostgreSQL has the last of them as completed.
* ``start_lateness_p99_s``: of the same runs, the 99th percentile of what lies between their due time and
  JOB_STARTED: in a burst, how long the queue took.
* ``bare_celery_ratio``: our rate over that of a bare Celery worker (bare_celery.py) with as many threads.
* ``…_cpu_us_per_run``: what each process computed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bare_celery import drain_bare
from benchmarks.clocks import cpu_s, sleep_until, wait_for
from benchmarks.dispatch import plan
from benchmarks.figures import Figure, percentile, progress
from scheduler_project.kernel.clock import utcnow
from scheduler_project.places.processes import BIN, NOWHERE, Process
from tests.outage import Outage
from tests.system import System, running_system

NUMBER = 2_000
WITHIN_S = 300.0
DONE = (
    "SELECT count(*) AS runs FROM executions_execution WHERE scheduled_for = %s AND finished_at IS NOT NULL"
)
LATE = "SELECT started_at - scheduled_for AS late FROM executions_execution WHERE scheduled_for = %s"
KINDS = ("beat", "worker", "recorder", "auditor")


@dataclass(frozen=True, slots=True)
class Round:
    took_s: float
    bare_s: float
    late_s: list[float]
    cpu_us: dict[str, float]


def measure(rounds: int) -> list[Figure]:
    with TemporaryDirectory() as home, running_system(Path(home)) as system:
        # Their own runs are due in a year: only the jobs and their RunSpecs are wanted.
        Outage(("latest",), NUMBER, "0 0 1 1 *", utcnow() + timedelta(days=365)).leave_behind(system)
        processes = {kind: system.start(kind) for kind in ("beat", "recorder", "auditor")}
        processes["worker"] = noop_worker(system)
        system.wait_until_ready()
        done = [_round(system, processes, number) for number in range(rounds + 1)][1:]  # the first warms up
    return [
        Figure("pipeline", "runs_per_s", "1/s", [NUMBER / one.took_s for one in done]),
        Figure("pipeline", "start_lateness_p99_s", "s", [percentile(one.late_s, 99) for one in done]),
        Figure("pipeline", "bare_celery_ratio", "", [one.bare_s / one.took_s for one in done]),
        *(
            Figure("pipeline", f"{kind}_cpu_us_per_run", "us", [one.cpu_us[kind] for one in done])
            for kind in KINDS
        ),
    ]


def noop_worker(system: System) -> Process:
    """A worker like any other, but for its runtime."""
    command = [str(BIN / "celery"), "-A", "benchmarks.noop", "worker", "-l", "INFO", "-n", "noop@%h"]
    env = {**system.env, "DATABASE_URL": NOWHERE}
    process = Process("worker99", command, env, system.home / "worker99.log")
    system.processes.append(process)
    return process


def _round(system: System, processes: dict[str, Process], number: int) -> Round:
    system.query("DELETE FROM executions_execution RETURNING 1")
    bare_s = drain_bare(system, NUMBER)
    due = plan(system, NUMBER)
    sleep_until(due - timedelta(milliseconds=50))
    before = {kind: cpu_s(process.pid) for kind, process in processes.items()}
    wait_for(lambda: _done(system, due) >= NUMBER, f"{NUMBER} runs are over", WITHIN_S, 0.1)
    took_s = (utcnow() - due).total_seconds()
    cpu_us = {kind: (cpu_s(p.pid) - before[kind]) * 1e6 / NUMBER for kind, p in processes.items()}
    late = [row["late"].total_seconds() for row in system.query(LATE, due)]
    one = Round(took_s, bare_s, late, cpu_us)
    rates = f"{NUMBER / took_s:.0f} runs/s, bare {NUMBER / bare_s:.0f}"
    progress(f"pipeline, round {number}: {rates}, p99 {percentile(late, 99):.1f} s, {cpu_us}")
    return one


def _done(system: System, due: datetime) -> int:
    return int(system.query(DONE, due)[0]["runs"])
