"""A worker that dies or is told to stop: its running runs go on, and another worker takes them up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection

from executions.bus.topology import work_queue
from tests.e2e.test_runs import body, cancel, log_of
from tests.images import busybox_image
from tests.system import Process, System, running_system

LEASE = {"PUNCTUAL_RUN_LEASE": "3s"}
Tell = Callable[[System, Process, str], None]
"""Tells a worker of that name, which that process is, to end."""


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


@pytest.fixture(autouse=True)
def no_worker_of_a_try_that_failed(system: System) -> Iterator[None]:
    """It would take the runs of the next."""
    yield
    for process in system.processes:
        if process.kind == "worker" and process.alive:
            process.signal(signal.SIGCONT)
            process.kill()


def begin_long_run(system: System, worker: Process, name: str, seconds: int) -> tuple[str, dict[str, Any]]:
    command = f"for n in $(seq {seconds}); do echo $n; sleep 1; done; exit 0"
    (job,) = system.create_jobs(body(name, command, "now"))
    system.wait_for(lambda: worker.alive and active(system, job), "the run is Active")
    run = system.executions(job)[0]
    system.wait_for(lambda: has_said(system, run), "its command runs")  # Active says that it is being started
    return job, run


def written(system: System, run: dict[str, Any]) -> int:
    """Bytes of its log, which has not ended."""
    return sum(log.stat().st_size for log in system.home.glob(f"logs/*/{run['id']}/*.log"))


def has_said(system: System, run: dict[str, Any]) -> bool:
    return any(log.stat().st_size for log in system.home.glob(f"logs/*/{run['id']}/*.log"))


def active(system: System, job: str) -> bool:
    return [row["state"] for row in system.executions(job)] == ["Active"]


def assert_ran_once(system: System, job: str, seconds: int) -> dict[str, Any]:
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["attempt"], run["exit_code"]) == ("Completed Normally", 1, 0)
    assert log_of(system, run, 1).split() == [str(n) for n in range(1, seconds + 1)]
    return run


def assert_goes_on_once(system: System, job: str) -> dict[str, Any]:
    """It is the first attempt, its log is whole and not doubled, and it can be cancelled. The ended run."""
    (run,) = system.executions(job)
    before = written(system, run)
    system.wait_for(lambda: written(system, run) > before, "its log goes on")
    cancel(system, run)
    (ended,) = system.wait_all_terminal([job], 1)
    assert (ended["state"], ended["attempt"]) == ("Cancelled", 1)
    said = log_of(system, ended, 1).split()
    assert said == [str(n + 1) for n in range(len(said))]
    return ended


def waiting_messages(system: System) -> int:
    with Connection(system.env["BROKER_URL"]) as connection:
        declared: Any = work_queue("runs")(connection).queue_declare(passive=True)
        return int(declared.message_count)


def test_another_worker_takes_up_the_run_of_a_killed_one(system: System) -> None:
    first = system.start("worker")
    job, run = begin_long_run(system, first, "survivor", 9)
    first.kill()
    assert waiting_messages(system) == 0  # it had been acknowledged: what had not comes back at once
    second = system.start("worker")
    ended = assert_ran_once(system, job, 9)
    assert ended["worker"].startswith(second.name)
    starts = [event["worker"] for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
    assert [worker.split("@")[0] for worker in starts] == [first.name, second.name]
    took = ended["finished_at"] - run["started_at"]
    assert took < timedelta(seconds=60), "not only after the enqueue time-out"
    assert second.stop() == 0


def test_however_a_worker_is_told_to_end_it_hands_its_run_over_and_ends_soon(system: System) -> None:
    """One run passes through the hands of all of them; the last one stops it."""
    workers = [system.start("worker") for _ in range(len(WAYS_TO_END) + 1)]
    system.wait_until_ready()
    job, run = begin_long_run(system, workers[0], "handed over", 600)
    had_it = [holder(system, job, [])]
    for tell in WAYS_TO_END:
        process = next(worker for worker in workers if worker.name == had_it[-1].partition("@")[0])
        tell(system, process, had_it[-1].partition("/")[0])
        assert process.wait(timeout_s=10) in {0, 1}
        had_it.append(holder(system, job, had_it))
    assert_goes_on_once(system, job)
    starts = [event["worker"] for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
    assert starts == had_it
    assert [worker.stop() for worker in workers if worker.alive] == [0]


def holder(system: System, job: str, before: list[str]) -> str:
    """The worker that has the run, none of those before."""

    def found() -> str:
        (run,) = system.executions(job)
        return "" if run["worker"] in before else str(run["worker"])

    return str(system.wait_for(found, "another worker has it"))


def send(number: signal.Signals) -> Tell:
    return lambda _system, process, _name: process.signal(number)


def by_remote_control(system: System, _process: Process, name: str) -> None:
    system.console.run(
        "from scheduler_project.celery import app; result = app.control.shutdown(destination=[name])",
        name=name,
    )


WAYS_TO_END: list[Tell] = [
    send(signal.SIGTERM),
    by_remote_control,
    send(signal.SIGINT),
    send(signal.SIGQUIT),
]


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
