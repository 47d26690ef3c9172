"""A worker that dies or is told to stop: its running runs go on, and another worker takes them up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_runs import body, log_of
from tests.images import busybox_image
from tests.system import Process, System, running_system

LEASE = {"PUNCTUAL_RUN_LEASE": "3s"}


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    home = tmp_path_factory.mktemp("system")
    options = {**LEASE, "PUNCTUAL_RUNTIME": request.param}
    if request.param == "docker":
        options["PUNCTUAL_IMAGE_SCRIPT"] = busybox_image()
    with running_system(home, **options) as found:
        found.start_all("beat recorder auditor")
        found.wait_until_ready()
        yield found


def begin_long_run(system: System, worker: Process, name: str, seconds: int) -> tuple[str, dict[str, Any]]:
    command = f"for n in $(seq {seconds}); do echo $n; sleep 1; done; exit 0"
    (job,) = system.create_jobs(body(name, command, "now"))
    system.wait_for(lambda: worker.alive and active(system, job), "the run is Active")
    run = system.executions(job)[0]
    system.wait_for(lambda: has_said(system, run), "its command runs")  # Active says that it is being started
    return job, run


def has_said(system: System, run: dict[str, Any]) -> bool:
    return any(log.stat().st_size for log in system.home.glob(f"logs/*/{run['id']}/*.log"))


def active(system: System, job: str) -> bool:
    return [row["state"] for row in system.executions(job)] == ["Active"]


def assert_ran_once(system: System, job: str, seconds: int) -> dict[str, Any]:
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["attempt"], run["exit_code"]) == ("Completed Normally", 1, 0)
    assert log_of(system, run, 1).split() == [str(n) for n in range(1, seconds + 1)]
    return run


def test_another_worker_takes_up_the_run_of_a_killed_one(system: System) -> None:
    first = system.start("worker")
    job, run = begin_long_run(system, first, "survivor", 9)
    first.kill()
    second = system.start("worker")
    ended = assert_ran_once(system, job, 9)
    assert ended["worker"].startswith(second.name)
    starts = [event["worker"] for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
    assert [worker.split("@")[0] for worker in starts] == [first.name, second.name]
    assert ended["finished_at"] - run["started_at"] < timedelta(seconds=25)
    assert second.stop() == 0


def test_a_stopped_worker_hands_its_runs_over_and_ends_soon(system: System) -> None:
    first = system.start("worker")
    job, _ = begin_long_run(system, first, "handed over", 7)
    assert first.stop(timeout_s=10) == 0
    second = system.start("worker")
    ended = assert_ran_once(system, job, 7)
    assert ended["worker"].startswith(second.name)
    assert second.stop() == 0


def test_a_run_whose_process_is_gone_is_lost_and_starts_again(system: System, tmp_path: Path) -> None:
    """Losing the container is not the job's failure: with no retries it still gets its run."""
    first = system.start("worker")
    job, run = begin_long_run(system, first, "lost", 4)
    first.kill()
    forget_container(system, run)
    second = system.start("worker")
    (ended,) = system.wait_all_terminal([job], 1)
    assert (ended["state"], ended["attempt"], ended["losses"]) == ("Completed Normally", 2, 1)
    assert "JOB_LOST" in [event["type"] for event in system.events(run["id"])]
    assert second.stop() == 0


def forget_container(system: System, run: dict[str, Any]) -> None:
    system.console.run(
        "from uuid import UUID; from executions.worker.process import configured_runtime;"
        "from containers.spec import container_name;"
        "configured_runtime().forget(container_name(UUID(execution), attempt))",
        execution=str(run["id"]),
        attempt=run["attempt"],
    )
