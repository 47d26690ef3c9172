"""kill -9 of a worker with twenty running containers, with the lease that a deployment has by default."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import docker
import pytest

from containers.spec import container_name
from scheduler_project.kernel.clock import utcnow
from tests.e2e.test_runs import body, log_of
from tests.faults.test_worker import has_said
from tests.images import busybox_image
from tests.system import System, running_system

RUNS = 20
WITHIN = timedelta(seconds=15)
UNTIL_TOLD = "trap 'exit 0' USR1; n=0; while :; do n=$((n+1)); echo $n; sleep 0.5; done"


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_others_attach_to_the_containers_of_a_killed_worker(tmp_path: Path) -> None:
    options = {"PUNCTUAL_RUNTIME": "docker", "PUNCTUAL_IMAGE_SCRIPT": busybox_image()}
    with running_system(tmp_path, **options) as system:
        system.start_all("beat recorder auditor")
        first = system.start("worker", PUNCTUAL_WORKER_SLOTS=str(RUNS))
        system.wait_until_ready()
        jobs = system.create_jobs(*[body(f"long {n}", UNTIL_TOLD, "now") for n in range(RUNS)])
        system.wait_for(lambda: all_say_something(system, jobs), "all run", 120)
        others = [system.start("worker", PUNCTUAL_WORKER_SLOTS=str(RUNS // 2)) for _ in range(2)]
        system.wait_until_ready()
        killed_at = utcnow()
        first.kill()
        taken = system.wait_for(lambda: taken_up(system, killed_at, jobs), "all are taken up", 60)
        print(f"taken up after {min(taken)} to {max(taken)}")  # noqa: T201 -- what was measured (pytest -s)
        assert max(taken) < WITHIN
        tell_to_end(system.executions(*jobs))
        for run in system.wait_all_terminal(jobs, RUNS):
            assert (run["state"], run["attempt"], run["losses"]) == ("Completed Normally", 1, 0)
            lines = log_of(system, run, 1).split()
            assert lines == [str(n + 1) for n in range(len(lines))]
            assert len(lines) > 2 * (min(taken).total_seconds() - 1)  # what it said meanwhile is there
            starts = [e["worker"] for e in system.events(run["id"]) if e["type"] == "JOB_STARTED"]
            assert [name.partition("@")[0] == first.name for name in starts] == [True, False]
        assert [worker.stop() for worker in others] == [0, 0]


def all_say_something(system: System, jobs: list[str]) -> bool:
    runs = system.executions(*jobs)
    return len(runs) == RUNS and all(has_said(system, run) for run in runs)


def taken_up(system: System, since: datetime, jobs: list[str]) -> list[timedelta]:
    """How long after ``since`` another worker said of each that it has it; empty before it is all."""
    rows = system.query(
        "SELECT e.execution_id, min(e.at) AS at FROM executions_executionevent e"
        " JOIN executions_execution x ON x.id = e.execution_id"
        " WHERE x.job_id = ANY(%s::uuid[]) AND e.type = 'JOB_STARTED' AND e.at > %s GROUP BY 1",
        jobs,
        since,
    )
    return [row["at"] - since for row in rows] if len(rows) == RUNS else []


def tell_to_end(runs: list[dict[str, Any]]) -> None:
    with closing(docker.APIClient(version="auto")) as api:
        for run in runs:
            api.kill(container_name(run["id"], 1), "SIGUSR1")
