"""``manage.py doctor``, on parts that are really broken."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection
from kombu import Queue

from beat.ownership import Ownership
from executions.bus.checkup import BrokerState, broker_state
from executions.bus.connection import broker_errors, connect
from executions.bus.topology import AUDITOR, DEAD, MAINTENANCE, RECORDER
from executions.partitions import EVENTS, EXECUTIONS, maintain, partition_name
from executions.presence import PresentWorker, announce
from executions.store import Store
from jobs.models import Job
from scheduler_project.doctor.broker import check_broker, on_queues, run_queues
from scheduler_project.doctor.clocks import check_clocks, compared
from scheduler_project.doctor.database import check_database, on_partitions, on_rights
from scheduler_project.doctor.examining import examine
from scheduler_project.doctor.findings import Finding, Level, ok
from scheduler_project.doctor.places import check_logs, check_settings
from scheduler_project.doctor.redis_server import check_redis
from scheduler_project.doctor.runtime import check_runtime
from scheduler_project.doctor.services import check_beats, check_workers
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.integration.commands.conftest import Manage
from tests.integration.executions.brokers import use_broker
from tests.redis_servers import redis_server
from tests.services import database

ROOT = Path(__file__).resolve().parents[3]
Making = Callable[..., Job]


def by_check(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def wrong(findings: Iterator[Finding]) -> set[str]:
    """The checks that failed; each says what to do."""
    found = [finding for finding in findings if finding.level is Level.FAILURE]
    assert all(finding.todo for finding in found)
    return {finding.check for finding in found}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def doctor(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "doctor", *words],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- Parts that are away -------------------------------------------------------------------------


def test_with_every_part_away_it_says_so_of_each_and_goes_on() -> None:
    port = free_port()
    done = doctor(
        "--json",
        DATABASE_URL=f"postgresql://nobody:hidden@127.0.0.1:{port}/none",
        REDIS_URL=f"redis://127.0.0.1:{port}/0",
        BROKER_URL=f"pyamqp://guest:hidden@127.0.0.1:{port}//",
    )
    assert (done.returncode, done.stderr) == (4, "")
    report = json.loads(done.stdout)
    away = {found["part"]: found["advice"] for found in report["checks"] if found["check"] == "reachable"}
    assert away["database"].startswith("Start PostgreSQL")
    assert away["redis"].startswith("Start Redis") and away["broker"].startswith("Start the broker")
    assert report["status"] == "failure"
    assert {found["part"] for found in report["checks"]} >= {"settings", "clocks", "beats", "workers", "logs"}
    assert "hidden" not in done.stdout


def test_without_addresses_it_asks_nobody(tmp_path: Path) -> None:
    """No default is asked instead, such as the broker on this host."""
    done = doctor(
        "database",
        "redis",
        "broker",
        "--json",
        DATABASE_URL="",
        REDIS_URL="",
        BROKER_URL="",
        PUNCTUAL_HOME=str(tmp_path),
    )
    assert [found["status"] for found in json.loads(done.stdout)["checks"]] == ["unknown"] * 3


def test_a_part_that_takes_connections_and_is_silent_keeps_nobody_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        never = threading.Event()

        def ask() -> Iterator[Finding]:
            yield ok("first", "It began.")
            with socket.create_connection(silent.getsockname()) as asked:
                asked.recv(1)
            never.set()

        before = monotonic()
        found = examine({"silent": ask, "other": lambda: iter([ok("fine", "Fine.")])}, within_s=0.5)
        assert monotonic() - before < 5
    assert [finding.check for finding in found["silent"]] == ["first", "reachable"]
    assert found["silent"][1].away and found["other"] == [ok("fine", "Fine.")]
    assert not never.is_set()


# --- PostgreSQL ----------------------------------------------------------------------------------


def test_a_database_without_migrations() -> None:
    with database() as url:
        done = doctor("database", "--json", DATABASE_URL=url)
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "failure"]
    assert (done.returncode, found["check"]) == (1, "migrations")
    assert found["advice"] == "Run 'manage.py migrate'."


@pytest.mark.django_db
def test_a_database_as_it_should_be() -> None:
    maintain(utcnow(), ahead=7, retention=timedelta(days=30))
    found = by_check(check_database())
    # a server of tests may be told not to vacuum by itself
    assert {check for check, finding in found.items() if finding.level is not Level.OK} <= {"vacuum"}
    assert {"version", "writable", "migrations", "rights", "partitions", "vacuum", "jobs"} <= found.keys()


@pytest.mark.django_db
@pytest.mark.parametrize(("ahead", "level"), [(0, Level.FAILURE), (1, Level.FAILURE), (4, Level.WARNING)])
@pytest.mark.parametrize("table", [EXECUTIONS, EVENTS])
def test_a_missing_partition(ahead: int, level: Level, table: str) -> None:
    now = utcnow()
    maintain(now, ahead=7, retention=timedelta(days=30))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {partition_name(table, now.date() + timedelta(days=ahead))}")
    found = by_check(on_partitions(now))["partitions"]
    assert found.level is level
    assert "maintenance" in found.todo


@pytest.mark.django_db
def test_days_that_nobody_has_dropped() -> None:
    maintain(utcnow() - timedelta(days=40), ahead=0, retention=timedelta(days=90))
    assert by_check(on_partitions(utcnow()))["retention"].level is Level.WARNING


@pytest.mark.django_db
def test_a_role_that_may_not_write() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE doctor_reader")
        cursor.execute("GRANT USAGE ON SCHEMA public TO doctor_reader")
        cursor.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_reader")
        cursor.execute("SET LOCAL ROLE doctor_reader")
        found = by_check(on_rights("doctor_reader"))["rights"]
        cursor.execute("RESET ROLE")
    assert found.level is Level.FAILURE
    assert (
        "INSERT, UPDATE, DELETE on jobs_job" in found.said and "OWNER on executions_execution" in found.said
    )


# --- Redis ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A server of its own, which may be spoilt."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.redis


@pytest.fixture
def spoilt(own_redis: redis.Redis) -> Iterator[Callable[..., dict[str, Finding]]]:
    """What is found with these of its settings."""
    port = own_redis.connection_pool.connection_kwargs["port"]
    before = {"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "no"}

    def found(**changed: Any) -> dict[str, Finding]:
        for name, value in changed.items():
            own_redis.config_set(name.replace("_", "-"), value)
        with closing(Store(f"redis://127.0.0.1:{port}/0", "any")) as store:
            return by_check(check_redis(lambda: store))

    yield found
    for name, value in before.items():
        own_redis.config_set(name, value)


def test_a_redis_as_it_should_be(spoilt: Callable[..., dict[str, Finding]]) -> None:
    assert {finding.level for finding in spoilt(appendonly="yes").values()} == {Level.OK}


def test_a_redis_that_throws_keys_away(spoilt: Callable[..., dict[str, Finding]]) -> None:
    found = spoilt(maxmemory="100mb", maxmemory_policy="allkeys-lru")["eviction"]
    assert found.level is Level.FAILURE
    assert "CONFIG SET maxmemory-policy noeviction" in found.todo


@pytest.mark.parametrize(("share", "level"), [(0.99, Level.FAILURE), (0.88, Level.WARNING), (0.3, Level.OK)])
def test_a_redis_that_is_nearly_full(
    spoilt: Callable[..., dict[str, Finding]], own_redis: redis.Redis, share: float, level: Level
) -> None:
    used = int(own_redis.info("memory")["used_memory"])
    assert spoilt(maxmemory=str(int(used / share)))["memory"].level is level


def test_a_redis_that_is_a_replica(spoilt: Callable[..., dict[str, Finding]], own_redis: redis.Redis) -> None:
    own_redis.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
    try:
        assert spoilt()["writable"].level is Level.FAILURE
    finally:
        own_redis.execute_command("REPLICAOF", "NO", "ONE")


# --- The broker ----------------------------------------------------------------------------------


@pytest.fixture
def queues(db: None) -> Iterator[None]:
    """The queues of this session's virtual host, none of them there."""

    def delete() -> None:
        with connect() as opened, opened.channel() as channel:
            for name in (RECORDER, AUDITOR, DEAD, MAINTENANCE):
                channel.queue_delete(name)  # type: ignore[attr-defined]

    delete()
    yield
    delete()


def seen() -> BrokerState:
    return broker_state(run_queues(), within_s=10)


def declared(name: str, **arguments: Any) -> None:
    with connect() as opened, opened.channel() as channel:
        Queue(name, queue_arguments=arguments or None, durable=True).bind(channel).queue_declare()


def test_a_queue_of_the_wrong_type(queues: None) -> None:
    declared(RECORDER)
    found = by_check(on_queues(seen(), None))["queues"]
    assert RECORDER in found.said or AUDITOR in found.said
    wrong_ones = [
        each for each in on_queues(seen(), None) if each.check == "queues" and "x-queue-type" in each.said
    ]
    assert [each.level for each in wrong_ones] == [Level.FAILURE]
    assert f"rabbitmqctl delete_queue {RECORDER}" in wrong_ones[0].todo


def test_queues_that_nobody_has_declared_and_nobody_takes_from(queues: None) -> None:
    found = by_check(on_queues(seen(), None))
    assert found["queues"].level is Level.FAILURE and "record_events" in found["queues"].todo
    assert {found[name].level for name in ("recorder", "auditor", "maintenance")} == {Level.FAILURE}
    assert found["dead_letters"].level is Level.OK


@pytest.mark.parametrize("known", [None, {RECORDER: ["here:1"], AUDITOR: []}])
def test_over_redis_recorder_and_auditor_say_themselves_that_they_are_there(
    known: dict[str, list[str]] | None, settings: Any, db: None
) -> None:
    use_broker(settings, settings.REDIS_URL)
    found = by_check(on_queues(broker_state([], within_s=10), known))
    broker_errors.cache_clear()
    assert found["recorder"].level is Level.OK
    assert found["auditor"].level is (Level.OK if known is None else Level.FAILURE)
    assert ("1 consumer" in found["recorder"].said) is (known is not None)


def test_looking_makes_no_queue(queues: None) -> None:
    assert by_check(check_broker())["reachable"].said.startswith("RabbitMQ ")
    assert by_check(on_queues(seen(), None))["queues"].said.startswith("Not declared yet")


def test_dead_letters_that_wait(queues: None) -> None:
    quorum = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
    declared(DEAD, **quorum)
    with connect(confirm=True) as opened:
        opened.Producer().publish("lost", routing_key=DEAD)
    deadline = monotonic() + 10  # a quorum queue counts with a delay
    while (found := by_check(on_queues(seen(), None))["dead_letters"]).level is Level.OK:
        assert monotonic() < deadline
    assert "1 message" in found.said and "manage.py dead_letters" in found.todo


def test_a_broker_that_is_away(settings: Any, db: None) -> None:
    use_broker(settings, f"pyamqp://guest:guest@127.0.0.1:{free_port()}//")
    try:
        (found,) = check_broker()
    finally:
        broker_errors.cache_clear()
    assert found.away and found.level is Level.FAILURE


# --- Clocks, beats, workers ----------------------------------------------------------------------


@pytest.mark.django_db
def test_clocks_that_agree(store: Store) -> None:
    assert {finding.level for finding in check_clocks()} == {Level.OK}


@pytest.mark.parametrize(
    ("skew", "level"), [(-8.0, Level.FAILURE), (6.0, Level.FAILURE), (2.0, Level.WARNING), (0.1, Level.OK)]
)
def test_a_clock_that_is_wrong(skew: float, level: Level) -> None:
    assert compared("redis", "Redis", lambda: utcnow() + timedelta(seconds=skew)).level is level


def test_without_a_beat_nothing_is_sent(store: Store) -> None:
    assert wrong(check_beats()) == {"alive"}


def test_a_shard_that_nobody_owns(store: Store, settings: Any) -> None:
    beat = Ownership(store, "b1", settings.PUNCTUAL_SHARDS, timedelta(minutes=1))
    beat.renew()
    assert wrong(check_beats()) == set()
    store.batch(lambda pipe: pipe.delete(store.key(3, "owner")))
    assert wrong(check_beats()) == {"shards"}


@pytest.mark.django_db
def test_a_queue_that_no_worker_listens_on(store: Store, new_job: Making) -> None:
    new_job(queue="etl")
    assert wrong(check_workers()) == {"alive", "queues"}
    announce(store, PresentWorker("w1", ["runs"], 8))
    assert wrong(check_workers()) == {"queues"}
    announce(store, PresentWorker("w2", ["etl"], 8))
    assert wrong(check_workers()) == set()


# --- Where runs run, logs, settings --------------------------------------------------------------


@pytest.mark.django_db
def test_a_job_whose_image_is_not_allowed_any_more(settings: Any, new_job: Making, store: Store) -> None:
    settings.PUNCTUAL_RUNTIME = "process"
    new_job(image="registry.example.org/etl:1")
    assert wrong(check_runtime()) == set()
    settings.PUNCTUAL_ALLOW_IMAGES = ["other.example.org/*"]
    found = by_check(check_runtime())["allowed"]
    assert found.level is Level.FAILURE and "ops/nightly" in found.said


@pytest.mark.django_db
def test_an_engine_that_is_away_counts_where_no_worker_has_another(
    settings: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PUNCTUAL_RUNTIME = "docker"
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{free_port()}")
    assert by_check(check_runtime())["reachable"].away
    announce(store, PresentWorker("elsewhere", ["runs"], 8))
    assert by_check(check_runtime())["reachable"].level is Level.WARNING


def test_a_log_folder_that_cannot_be_written(settings: Any) -> None:
    assert wrong(check_logs()) <= {"disk"}
    settings.PUNCTUAL_LOG_DIR = Path("/proc/none/logs")
    assert "folder" in wrong(check_logs())


def test_settings_that_are_dangerous(settings: Any) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS, settings.SECRET_KEY = True, ["*"], "short"
    found = by_check(check_settings())
    assert found["debug"].level is Level.FAILURE
    assert {found[check].level for check in ("allowed_hosts", "secret_key")} == {Level.WARNING}


def test_it_tells_nobody_but_superusers_what_is_where(
    manage: Manage, root: User, member_of: Callable[..., User]
) -> None:
    member_of("mia", "ops")
    refused = manage("doctor", "settings", "--user", "mia")
    assert (refused.code, refused.out) == (1, "")
    assert "only superusers may" in refused.err
    assert manage("doctor", "settings", "--user", "nobody").code == 3
    whole = manage("doctor", "settings", "--json")
    assert manage("doctor", "settings", "--json", "--user", "root").json == whole.json
