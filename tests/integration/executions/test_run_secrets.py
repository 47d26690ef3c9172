"""What a run worker makes of secrets, and of what this deployment does not let a run have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from containers.allowed import Allowed
from containers.process.runtime import ProcessOptions, ProcessRuntime
from containers.secrets import EnvironmentSecrets, FolderSecrets, SecretSource
from containers.supervise import Detached
from executions.entries import Flag
from executions.log_places import log_store
from executions.store import Store
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults
from executions.worker.lifecycle import RunWorker
from executions.worker.slots import Slots
from scheduler_project.kernel.clock import SYSTEM_CLOCK, monotonic
from scheduler_project.kernel.errors import NotFound
from tests.contract.bench import eventually
from tests.integration.executions.test_run_worker import assignment, begun

SECRET = {"secretEnv": {"WORD": "data-engineering/word"}}
VALUE = "canary-91c2"
KNOWN = EnvironmentSecrets({"PUNCTUAL_SECRET_DATA_ENGINEERING__WORD": VALUE})


@pytest.fixture
def worker_with(store: Store, tmp_path: Path) -> Iterator[Callable[..., RunWorker]]:
    """Workers of one host, which know these secrets and allow this."""
    made: list[RunWorker] = []

    def make(*secrets: SecretSource, **allowed: Any) -> RunWorker:
        runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
        defaults = RunDefaults(secrets=secrets, allowed=Allowed(**allowed))
        made.append(
            RunWorker(
                f"w{len(made)}", Slots(1, ["runs"]), runtime, store, defaults=defaults, clock=SYSTEM_CLOCK
            )
        )
        return made[-1]

    yield make
    for worker in made:
        worker.stopping.set()
        worker.close()


def output_of(given: Assignment) -> str:
    try:
        return b"".join(log_store().read(given.execution_id)).decode()
    except NotFound:
        return ""


def test_a_secret_that_its_run_prints_is_masked(worker_with: Callable[..., RunWorker]) -> None:
    given = assignment('echo "it is $WORD"', container=SECRET)
    worker = worker_with(KNOWN)
    assert worker.execute(begun(worker, given)).reason == "succeeded"
    assert output_of(given) == f"it is {'*' * len(VALUE)}\n"


def test_the_output_of_a_run_whose_secret_is_not_known_any_more_is_withheld_and_its_end_told(
    worker_with: Callable[..., RunWorker], tmp_path: Path
) -> None:
    script = f'echo begun; until test -e {tmp_path}/go; do sleep 0.05; done; echo "it is $WORD"; exit 7'
    given = assignment(script, container=SECRET)
    first = worker_with(KNOWN)
    held = begun(first, given)
    with ThreadPoolExecutor() as threads:
        running = threads.submit(first.execute, held)
        eventually(lambda: "begun" in output_of(given), "it has begun")
        first.stopping.set()
        with pytest.raises(Detached):
            running.result(20)
    first.hand_over(held)
    (tmp_path / "go").touch()

    second = worker_with(EnvironmentSecrets({}))
    again = replace(given, flags=Flag.REATTACH)
    deadline = monotonic() + 20
    while (taken := second.begin(again)) is None:
        assert monotonic() < deadline
    ended = second.execute(taken)
    assert (ended.reason, ended.exit_code) == ("failed", 7)
    told = output_of(given)
    assert "begun" in told and "no secret 'data-engineering/word'" in told
    assert VALUE not in told and "it is" not in told


@pytest.mark.parametrize(
    ("container", "image", "reason", "named"),
    [
        (SECRET, "", "secret_missing", "PUNCTUAL_SECRET_DATA_ENGINEERING__WORD"),
        ({"secretEnv": {"A": "Data-Engineering/word"}}, "", "not_allowed", "container.secretEnv.A"),
        ({"secretEnv": {"A": "data_engineering/word"}}, "", "not_allowed", "container.secretEnv.A"),
        ({"user": "0"}, "", "not_allowed", "container.user"),
        ({}, "evil:1", "not_allowed", "image: 'evil:1'"),
        ({"network": "host"}, "", "not_allowed", "PUNCTUAL_ALLOW_NETWORKS"),
        ({"usre": "0"}, "", "start_failed", "container.usre"),
        ({"network": "none"}, "", "start_failed", "the process runtime cannot give"),
    ],
)
def test_what_cannot_be_given_starts_nothing_and_is_said(
    worker_with: Callable[..., RunWorker], tmp_path: Path, container: Any, image: str, reason: str, named: str
) -> None:
    for team in ("Data-Engineering", "data_engineering"):
        (tmp_path / team).mkdir()
        (tmp_path / team / "word").write_text(VALUE)
    places = (EnvironmentSecrets({}), FolderSecrets(tmp_path))
    worker = worker_with(*places, users=("1000",), images=("good:*",))
    given = assignment(f"touch {tmp_path / 'ran'}", container=container, image=image)
    ended = worker.execute(begun(worker, given))
    assert ended.reason == reason
    assert named in ended.message
    assert not (tmp_path / "ran").exists()
