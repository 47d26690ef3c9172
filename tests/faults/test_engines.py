"""Workers that reach different engines: what one has begun is taken up where its container is.

The engines are two folders of processes, which are as far apart as two Docker engines are: what runs
below the one cannot be found, or ended, from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from containers.process.container import _marked_processes
from containers.spec import container_name
from tests.e2e.test_runs import body
from tests.faults.test_worker import active, assert_goes_on_once, begin_long_run, has_said
from tests.system import Process, System, running_system

TIMES = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENGINE_WAIT": "8s"}


@pytest.fixture(scope="module", params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    home = tmp_path_factory.mktemp("system")
    with running_system(home, request.param, **TIMES, PUNCTUAL_LOG_DIR=str(home / "logs")) as found:
        found.start_all("beat recorder auditor")
        found.wait_until_ready()
        yield found


def start_on(system: System, *engines: str) -> list[Process]:
    """A worker of each engine, up."""
    workers = [system.start("worker", PUNCTUAL_HOME=str(system.home / engine)) for engine in engines]
    system.wait_for(
        lambda: all(worker.up and "engine_known" in worker.text() for worker in workers), "workers are up"
    )
    return workers


def test_a_run_goes_back_to_a_worker_of_its_engine(system: System) -> None:
    (first,) = start_on(system, "here")
    job, _ = begin_long_run(system, first, "goes back", 600)
    other, second = start_on(system, "there", "here")
    first.kill()
    system.wait_for(lambda: system.executions(job)[0]["worker"].startswith(second.name), "it is taken up")
    assert_goes_on_once(system, job)
    assert [worker.stop() for worker in (other, second)] == [0, 0]


def test_a_run_whose_engine_has_no_worker_is_lost_in_the_end_and_removed_when_that_has_one(
    system: System,
) -> None:
    (first,) = start_on(system, "here")
    (job,) = system.create_jobs(
        body("left behind", 'echo on; [ "$PUNCTUAL_ATTEMPT" = 2 ] || sleep 600', "now")
    )
    system.wait_for(lambda: active(system, job) and has_said(system, system.executions(job)[0]), "it runs")
    (run,) = system.executions(job)
    first.kill()
    (other,) = start_on(system, "there")
    (ended,) = system.wait_all_terminal([job], 1)
    assert (ended["state"], ended["attempt"], ended["losses"]) == ("Completed Normally", 2, 1)
    assert ended["worker"].startswith(other.name)
    (lost,) = [event for event in system.events(run["id"]) if event["type"] == "JOB_LOST"]
    assert "PUNCTUAL_ENGINE_WAIT" in lost["message"]
    assert lost["at"] - run["started_at"] > timedelta(seconds=8)
    assert processes_of(run)
    (back,) = start_on(system, "here")
    system.wait_for(lambda: not processes_of(run), "what was left behind is removed")
    system.wait_for(lambda: "container_reaped" in back.text(), "it is told")
    assert [worker.stop() for worker in (other, back)] == [0, 0]


def processes_of(run: dict[str, Any]) -> set[int]:
    return _marked_processes(container_name(run["id"], 1))
