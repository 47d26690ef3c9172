"""A run whose worker dies each time that one has it: it ends, with that reason, and kills nobody more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.test_runs import body
from tests.processes import PROC
from tests.system import System, running_system


def had_by(system: System, job: str, worker: str) -> dict[str, Any]:
    """The job's run, as soon as that worker has it or it has ended."""

    def found() -> dict[str, Any] | None:
        (run,) = system.executions(job)
        return run if run["finished_at"] or run["worker"].startswith(worker) else None

    run: dict[str, Any] = system.wait_for(found, f"{worker} has it")
    return run


def test_a_run_that_kills_each_of_its_workers_is_given_up(tmp_path: Path) -> None:
    with running_system(tmp_path, PUNCTUAL_RUN_LEASE="2s") as system:
        worker = system.start("worker")
        system.start_all("beat recorder auditor")
        system.wait_until_ready()
        mark = tmp_path / "pid"
        (job,) = system.create_jobs(body("killer", f"echo $$ > {mark}; exec sleep 300", "now"))
        # The last of its attempts: three were lost like this one.
        system.wait_for(lambda: mark.exists() and mark.read_text().strip(), "it runs")
        system.query("UPDATE executions_execution SET losses = 3 WHERE job_id = %s RETURNING id", job)
        pid = mark.read_text().strip()
        killed = 0
        while not had_by(system, job, worker.name)["finished_at"]:
            worker.kill()
            killed += 1
            worker = system.start("worker")
        (ended,) = system.executions(job)
        assert (ended["state"], ended["reason"]) == ("Completed Abnormally", "lost")
        assert "times within minutes the worker that had it went away" in ended["message"]
        assert 4 <= killed <= 6  # one may die before it has counted
        system.wait_for(lambda: not (PROC / pid).exists(), "what still ran of it is removed")
        (job,) = system.create_jobs(body("after the killer", "true", "now"))
        (run,) = system.wait_all_terminal([job], 1)
        assert run["state"] == "Completed Normally"
