"""Runs in real Docker containers, from the job to its state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import docker
import pytest
from kombu import Connection, Queue
from redis import Redis

from executions.bus.topology import EVENTS, RUNS, work_queue
from tests.e2e.test_runs import body, log_of
from tests.images import busybox_image
from tests.system import System, running_system

pytestmark = pytest.mark.docker
CANARY = "canary-4d1f0c3e"
WORKER = {
    "PUNCTUAL_SECRET_TESTS__WAREHOUSE": CANARY,
    "PUNCTUAL_ALLOW_USERS": "65534",  # whatever those allow where jobs are saved
    "PUNCTUAL_LOG_LEVEL": "DEBUG",
}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    image = busybox_image()
    with running_system(
        tmp_path_factory.mktemp("system"), PUNCTUAL_RUNTIME="docker", PUNCTUAL_IMAGE_SCRIPT=image
    ) as found:
        found.start_all("beat recorder auditor")
        found.start("worker", **WORKER)
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
        body(
            "no image",
            "true",
            "now",
            type="Container",
            image="localhost:1/punctual-test/none:1",
            container={"startTimeout": "3s"},
        )
    )
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "image_pull_failed")
    assert "localhost:1/punctual-test/none:1" in run["message"]


def test_a_secret_reaches_its_run_and_is_nowhere_else(system: System) -> None:
    container = {"secretEnv": {"PGPASSWORD": "tests/warehouse"}, "network": "none"}
    digest = hashlib.md5(CANARY.encode(), usedforsecurity=False).hexdigest()
    bodies = [
        body("secret", 'printf %s "$PGPASSWORD" | md5sum; echo "$PGPASSWORD"', "now", container=container),
        body("secret-fails", "exit 3", "now", container=container),
        body(
            "secret-and-no-program",
            "no-such-program",
            "now",
            type="Container",
            image=busybox_image(),
            container=container,
        ),
        body("secret-template", "{{ nope }}", "now", container=container),
    ]
    with spying_on(system) as events:
        with no_worker(system):
            jobs = system.create_jobs(*bodies)
            messages = waiting_messages(system, len(jobs))
        runs = {str(run["job_id"]): run for run in system.wait_all_terminal(jobs, len(jobs))}
        messages += events()
    wanted = ["succeeded", "failed", "start_failed", "template_error"]
    assert [runs[job]["reason"] for job in jobs] == wanted
    assert log_of(system, runs[jobs[0]], 1) == f"{digest}  -\n{'*' * len(CANARY)}\n"
    # The name is there, as it should be: what is looked for below would be found.
    assert sum(b"tests/warehouse" in message for message in messages) >= len(jobs)
    places = {
        "message": b"".join(messages),
        "database": everything_in_the_database(system).encode(),
        "redis": everything_in_redis(system),
        **{str(path): path.read_bytes() for path in system.home.rglob("*") if path.is_file()},
    }
    assert len(places["database"]) > 10_000 and len(places["redis"]) > 100
    assert [place for place, content in places.items() if CANARY.encode() in content] == []


def test_a_secret_that_is_nowhere_and_a_user_that_the_worker_forbids_are_reasons(system: System) -> None:
    missing, forbidden = system.create_jobs(
        body(
            "missing",
            "true",
            "now",
            container={"secretEnv": {"A": "tests/absent"}},
            retries=1,
            retryDelay="1s",
        ),
        body("forbidden", "true", "now", container={"user": "0"}, retries=1, retryDelay="1s"),
    )
    runs = {str(run["job_id"]): run for run in system.wait_all_terminal([missing, forbidden], 2)}
    assert (runs[missing]["reason"], runs[missing]["attempt"]) == ("secret_missing", 2)
    assert "PUNCTUAL_SECRET_TESTS__ABSENT" in runs[missing]["message"]
    assert (runs[forbidden]["reason"], runs[forbidden]["attempt"]) == ("not_allowed", 1)
    assert "container.user: '0' is not allowed here. Allowed: 65534" in runs[forbidden]["message"]


def test_options_reach_the_container(system: System) -> None:
    container = {
        "workingDir": "/tmp",
        "user": "65534",
        "network": "none",
        "resources": {"memory": {"limit": "64Mi"}},
        "labels": {"example.org/tier": "nightly"},
        "volumes": [{"scratch": "1Mi", "target": "/work"}],
    }
    script = "pwd; id -u; echo x > /work/x && cat /work/x; cat /sys/fs/cgroup/memory.max 2>/dev/null || true"
    (job,) = system.create_jobs(body("options", script, "now", container=container))
    (run,) = system.wait_all_terminal([job], 1)
    assert run["reason"] == "succeeded", run["message"]
    assert log_of(system, run, 1).split()[:3] == ["/tmp", "65534", "x"]


@contextmanager
def spying_on(system: System) -> Iterator[Callable[[], list[bytes]]]:
    """A queue of one's own that gets a copy of every event."""
    with Connection(system.env["BROKER_URL"]) as connection, connection.channel() as channel:
        spy = Queue("spy", EVENTS, routing_key="#")(channel)
        spy.declare()
        yield lambda: [_content_of(message) for message in _taken(spy)]
        spy.delete()


@contextmanager
def no_worker(system: System) -> Iterator[None]:
    """Nobody takes runs meanwhile; afterwards somebody does, for the tests to come as well."""
    next(process for process in system.processes if process.kind == "worker" and process.alive).stop()
    try:
        yield
    finally:
        system.start("worker", **WORKER)


def waiting_messages(system: System, count: int) -> list[bytes]:
    """The messages of so many runs that wait for a worker; they go on waiting. One may be there twice."""
    with Connection(system.env["BROKER_URL"]) as connection, connection.channel() as channel:
        found: list[Any] = []

        def complete() -> bool:
            found.extend(_taken(work_queue(RUNS)(channel)))
            return len({message.headers["id"] for message in found}) == count

        system.wait_for(complete, f"{count} runs")
        return [_content_of(message) for message in found]


def _taken(queue: Any) -> Iterator[Any]:
    """Not acknowledged: they are given again when the channel is closed."""
    while (message := queue.get()) is not None:
        yield message


def _content_of(message: Any) -> bytes:
    body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
    return body + repr((message.headers, message.properties)).encode()


def everything_in_the_database(system: System) -> str:
    tables = system.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    return "".join(
        str(row["content"])
        for table in tables
        for row in system.query(f'SELECT t::text AS content FROM "{table["table_name"]}" t')
    )


def everything_in_redis(system: System) -> bytes:
    with Redis.from_url(system.env["REDIS_URL"]) as redis:
        return b"".join(name + _content(redis, name) for name in redis.scan_iter())


def _content(redis: Redis, name: bytes) -> bytes:
    reads: dict[Any, Callable[[], Any]] = {
        b"string": lambda: redis.get(name),
        b"hash": lambda: redis.hgetall(name),
        b"zset": lambda: redis.zrange(name, 0, -1),
        b"list": lambda: redis.lrange(name, 0, -1),
        b"set": lambda: redis.smembers(name),
        b"none": lambda: b"",
    }
    return repr(reads[redis.type(name)]()).encode()
