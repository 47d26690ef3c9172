"""Messages on the queue of runs that are no runs: each is buried, and the worker goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from kombu import Connection

from tests.e2e.test_runs import body
from tests.system import System, running_system

RUN = {"task": "executions.run", "id": "a:1", "lang": "py"}
EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def arguments(**changed: Any) -> dict[str, Any]:
    spec = {"job_id": str(uuid4()), "job_name": "j", "owner": "o", "owner_id": 1, "type": "Script"}
    spec |= {"command": "true", "schedule": {}}
    return {"execution": str(uuid4()), "attempt": 1, "flags": 0, "spec": spec, "queued": 0, **changed}


POISON: dict[str, tuple[dict[str, Any] | None, Any]] = {
    "no headers": (None, [[], arguments(), EMBED]),
    "no task": ({"id": "a:1"}, [[], arguments(), EMBED]),
    "unknown task": ({**RUN, "task": "no.such.task"}, [[], arguments(), EMBED]),
    "a task that is no name": ({**RUN, "task": ["x"]}, [[], arguments(), EMBED]),
    "no id": ({"task": "executions.run"}, [[], arguments(), EMBED]),
    "body is a text": (RUN, "str"),
    "body is a number": (RUN, 7),
    "body is too short": (RUN, [[], {}]),
    "arguments are a text": (RUN, [[], "str", EMBED]),
    "positional arguments": (RUN, [[1], arguments(), EMBED]),
    "no arguments": (RUN, [[], {}, EMBED]),
    "attempt out of range": (RUN, [[], arguments(attempt=10**9), EMBED]),
    "embedded text": (RUN, [[], arguments(), "str"]),
    "a callback": (RUN, [[], arguments(), {**EMBED, "callbacks": [{"task": "executions.run"}]}]),
    "due in the year 9999": ({**RUN, "eta": "9999-12-31T23:59:59"}, [[], arguments(), EMBED]),
    "eta is nonsense": ({**RUN, "eta": "tomorrow"}, [[], arguments(), EMBED]),
    "a time limit of one": ({**RUN, "timelimit": [1]}, [[], arguments(), EMBED]),
}


@pytest.fixture(scope="module", params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system"), request.param) as found:
        found.start_all("beat recorder auditor")
        found.start("worker", PUNCTUAL_WORKER_SLOTS="1")
        found.wait_until_ready()
        yield found


_ATTENDING = """
from executions.attendance import attending
from executions.store import default_store
result = attending(default_store())
"""


def publish(system: System, headers: dict[str, Any] | None, content: str, content_type: str) -> None:
    options = {"global_keyprefix": "punctual.bus."} if system.env["BROKER_URL"].startswith("redis") else {}
    with Connection(system.env["BROKER_URL"], transport_options=options) as connection:
        connection.Producer().publish(
            content, exchange="", routing_key="runs", headers=headers, content_type=content_type,
            content_encoding="utf-8",
        )  # fmt: skip


def test_what_is_no_run_is_buried_and_the_next_run_starts(system: System) -> None:
    (worker,) = [process for process in system.processes if process.name.startswith("worker")]
    for headers, content in POISON.values():
        publish(system, headers, json.dumps(content), "application/json")
    publish(system, RUN, "{", "application/json")
    publish(system, RUN, "cos\nsystem\n", "application/x-python-serialize")
    number = len(POISON) + 2
    system.wait_for(lambda: f"{number} dead letters" in system.manage("dead_letters"), f"{number} are buried")
    (job,) = system.create_jobs(body("after the poison", "true", "now"))
    (run,) = system.wait_all_terminal([job], 1)
    assert run["state"] == "Completed Normally"
    assert worker.alive
    listed = system.manage("dead_letters", "--discard")
    assert "there is no task 'no.such.task'" in listed
    assert "0 dead letters" in system.manage("dead_letters")


def test_recorder_and_auditor_say_that_they_are_there_and_a_stop_takes_it_back(system: System) -> None:
    def there() -> dict[str, int]:
        return {queue: len(names) for queue, names in system.console.run(_ATTENDING).items()}

    both = {"punctual.recorder": 1, "punctual.auditor": 1}
    system.wait_for(lambda: there() == both, "both are there")
    (auditor,) = [process for process in system.processes if process.name.startswith("auditor")]
    auditor.stop()
    assert there() == {**both, "punctual.auditor": 0}
    system.processes.remove(auditor)
    system.start("auditor")
    system.wait_for(lambda: there() == both, "another is there")
