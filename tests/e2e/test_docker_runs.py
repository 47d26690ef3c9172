"""Runs in real Docker containers, from the job to its state."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest

from tests.e2e.test_runs import body, log_of
from tests.images import busybox_image
from tests.system import System, running_system

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    image = busybox_image()
    with running_system(
        tmp_path_factory.mktemp("system"), PUNCTUAL_RUNTIME="docker", PUNCTUAL_IMAGE_SCRIPT=image
    ) as found:
        found.start_all()
        found.wait_until_ready()
        yield found


def test_a_run_in_a_container_starts_in_time_and_its_log_is_kept(system: System) -> None:
    run, other = system.run_in_time(
        lambda name: [
            body(f"docker-{name}", "echo from {{ job }}", {"after": "2s"}),
            body(f"named-{name}", "echo chosen", "now", type="Container", image=busybox_image()),
        ]
    )
    assert {run["state"], other["state"]} == {"Completed Normally"}
    assert log_of(system, run, 1).startswith("from docker-")
    assert log_of(system, other, 1) == "chosen\n"


def test_parameters_reach_a_container_and_it_is_removed_afterwards(system: System) -> None:
    (job,) = system.create_jobs(body("words", 'echo "$PARAM_WORD"', "now", parameters={"word": "{{ ds }}"}))
    (run,) = system.wait_all_terminal([job], 1)
    assert log_of(system, run, 1) == run["scheduled_for"].strftime("%Y-%m-%d\n")
    name = f"punctual-{run['id'].hex}-1"
    client = docker.from_env()
    try:
        system.wait_for(lambda: not client.containers.list(all=True, filters={"name": name}), "it is removed")
    finally:
        client.close()


def test_a_failing_container_makes_its_attempts(system: System) -> None:
    (job,) = system.create_jobs(body("failing", "exit 3", "now", retries=1, retryDelay="1s"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["attempt"], run["exit_code"]) == ("Completed Abnormally", 2, 3)


def test_a_time_limit_ends_a_container(system: System) -> None:
    (job,) = system.create_jobs(body("slow", "sleep 600", "now", timeout="2s"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "timed_out")


def test_an_image_that_cannot_be_had_is_said_clearly(system: System) -> None:
    (job,) = system.create_jobs(
        body("no image", "true", "now", type="Container", image="localhost:1/punctual-test/none:1")
    )
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "image_pull_failed")
    assert "localhost:1/punctual-test/none:1" in run["message"]
