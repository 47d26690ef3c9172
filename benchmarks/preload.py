"""Pre-load: a hundred thousand waiting runs of ten thousand jobs, from PostgreSQL into an empty window.

The loader runs in a process of its own, as it would in a beat, over 16 shards. The runs are due within the
next four minutes. The first round brings each job's RunSpec, as a beat does once an hour; it is not counted.

* ``runs_per_s``: from the first query to the mark that says that all is loaded.
* ``redis_bytes_per_run``: what Redis says that the buckets take (``MEMORY USAGE``), for each run.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure, progress
from scheduler_project.kernel.clock import utcnow
from tests.outage import Outage
from tests.system import running_system

JOBS, RUNS_A_JOB = 10_000, 10
NUMBER = JOBS * RUNS_A_JOB
_PLAN = """
from datetime import timedelta
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import occurrence
from scheduler_project.kernel.clock import utcnow

jobs, begin = list(Job.objects.all()), utcnow()
for number in range(runs_a_job):
    for start in range(0, len(jobs), 5000):
        due = begin + timedelta(seconds=24 * number)
        some = enumerate(jobs[start:start + 5000])
        insert([occurrence(job, due + timedelta(milliseconds=at)) for at, job in some])
result = len(jobs)
"""
_LOAD = """
from datetime import timedelta
from beat.loader import Loader
from beat.ownership import Ownership
from executions.store import default_store
from executions.window import Window
from scheduler_project.kernel.clock import EPOCH, monotonic

store = default_store()
window, shards = Window(store), range(16)
ownership = Ownership(store, "benchmark", len(shards), timedelta(hours=1))
ownership.renew()
loader = Loader(window, ownership, timedelta(hours=1))

def buckets():
    found = store.batch(lambda pipe: [pipe.zrange(store.key(shard, "buckets"), 0, -1) for shard in shards])
    return [store.key(shard, "b", str(int(at))) for shard, minutes in zip(shards, found) for at in minutes]

result = []
for _ in range(rounds + 1):
    store.batch(lambda pipe: [pipe.delete(key) for key in buckets()])
    window.mark_loaded(shards, EPOCH)
    began = monotonic()
    loader.run_once()
    took_s = monotonic() - began
    loaded = sum(store.batch(lambda pipe: [pipe.zcard(key) for key in buckets()]))
    size = sum(store.batch(lambda pipe: [pipe.memory_usage(key, samples=0) for key in buckets()]))
    result.append([took_s, loaded, size])
"""


def measure(rounds: int) -> list[Figure]:
    with TemporaryDirectory() as home, running_system(Path(home)) as system:
        # Their own runs are due in a year: only the jobs and their RunSpecs are wanted.
        Outage(("latest",), JOBS, "0 0 1 1 *", utcnow() + timedelta(days=365)).leave_behind(system)
        system.console.run(_PLAN, runs_a_job=RUNS_A_JOB)
        done = system.console.run(_LOAD, rounds=rounds)[1:]
    for took_s, loaded, size in done:
        progress(f"preload: {loaded} runs in {took_s:.3f} s, {size} bytes")
        if loaded != NUMBER:
            raise RuntimeError(f"{loaded} of {NUMBER} runs were loaded")
    return [
        Figure("preload", "runs_per_s", "1/s", [loaded / took_s for took_s, loaded, _ in done]),
        Figure("preload", "redis_bytes_per_run", "B", [size / loaded for _, loaded, size in done]),
    ]
