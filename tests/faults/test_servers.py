"""PostgreSQL, Redis and RabbitMQ, each a server of this module's own: killed, emptied, full, read-only.

PUNCTUAL_TEST_AWAY_S: for how many seconds PostgreSQL or RabbitMQ is away, where that is to be longer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from scheduler_project.kernel.clock import monotonic, utcnow
from tests.faults.streams import SECOND, begin_stream, due_between, lateness
from tests.own_servers import OwnPostgres, OwnRabbitMQ, OwnRedis, OwnServer
from tests.services import Services
from tests.system import System, migrate, system_at

pytestmark = pytest.mark.timeout(300)
TIMES = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENQUEUE_TIMEOUT": "15s"}
AWAY_S = float(os.environ.get("PUNCTUAL_TEST_AWAY_S", "4"))
WAITING = 100_000
MAKE_WAITING = """
from datetime import timedelta
from scheduler_project.kernel.clock import utcnow
from tests.integration.making import make_runs, stored_spec

spec, due = stored_spec(), utcnow() + timedelta(minutes=4, seconds=30)
for shard in range(16):
    make_runs(number // 16, spec, due=due, shard=shard)
result = None
"""


@dataclass(frozen=True, slots=True)
class Servers:
    postgres: OwnPostgres
    redis: OwnRedis
    rabbitmq: OwnRabbitMQ


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    home = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        made = Servers(
            OwnPostgres(home / "postgres"), OwnRedis(home / "redis"), OwnRabbitMQ(home / "rabbitmq")
        )
        for server in (made.rabbitmq, made.postgres, made.redis):
            stack.callback(server.kill)
            server.launch()
        for server in (made.postgres, made.redis, made.rabbitmq):
            server.wait()
        yield made


@pytest.fixture(scope="module")
def system(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    places = Services(servers.postgres.url, servers.redis.url, servers.rabbitmq.url)
    migrate(places.database_url)
    with system_at(tmp_path_factory.mktemp("system"), places, **TIMES) as found:
        found.start_all("beat beat worker recorder auditor")
        found.wait_until_ready()
        yield found


def wait_until_taken(system: System) -> None:
    """A run goes through: all parts are connected again."""
    begin_stream(system, "probe", 1, 0 * SECOND, after=0 * SECOND).ended()


def away(system: System, server: OwnServer, seconds: float = AWAY_S) -> None:
    """kill -9, a while, and its return."""
    server.kill()
    time.sleep(seconds)
    server.start()


@pytest.mark.timeout(300 + 2 * AWAY_S)
@pytest.mark.parametrize("which", ["postgres", "rabbitmq"])
def test_a_killed_server_that_comes_back_has_lost_nothing_and_nothing_ran_twice(
    system: System, servers: Servers, which: str
) -> None:
    stream = begin_stream(system, which, 40, (AWAY_S + 4) * SECOND)
    stream.wait_for_starts(3)
    away(system, getattr(servers, which))
    system.reconnect()
    rows = stream.ended_once()
    if which == "postgres":  # what was in the window did not wait for it
        assert lateness(rows) < 3 * SECOND
    assert all(process.alive for process in system.processes)


def test_while_postgres_takes_no_writes_runs_go_on_and_are_recorded_afterwards(
    system: System, servers: Servers
) -> None:
    stream = begin_stream(system, "read-only", 20, 3 * SECOND)
    servers.postgres.execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    stream.wait_for_starts(20)
    servers.postgres.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
    assert lateness(stream.ended_once()) < 3 * SECOND
    assert "0 dead letters" in system.manage("dead_letters")


@pytest.mark.parametrize("how", ["killed", "flushed"])
def test_a_redis_that_has_lost_everything_loses_no_run(system: System, servers: Servers, how: str) -> None:
    """What was claimed in that moment may start twice: only its claim knew of it."""
    stream = begin_stream(system, how, 40, 8 * SECOND)
    stream.wait_for_starts(3)
    since = utcnow()
    if how == "killed":
        away(system, servers.redis, 1.0)
    else:
        with servers.redis.client() as client:
            client.flushall()
    until = utcnow()
    rows = stream.ended()
    apart = {str(row["id"]) for row in due_between(rows, since - 2 * SECOND, until)}
    starts = stream.starts()
    assert set(starts) == {str(row["id"]) for row in rows}
    assert {starts[run] for run in starts.keys() - apart} == {1}
    assert lateness(due_between(rows, until + 5 * SECOND, until + 60 * SECOND) or rows[-1:]) < 3 * SECOND


def test_a_full_redis_holds_runs_up_and_loses_none(system: System, servers: Servers) -> None:
    stream = begin_stream(system, "full", 20, 5 * SECOND)
    stream.wait_for_starts(2)
    beat = next(process for process in system.processes if process.kind == "beat")
    said = beat.text().count("ownership_not_renewed")
    with servers.redis.client() as client:
        client.config_set("maxmemory", 1)
        try:
            system.wait_for(
                lambda: beat.text().count("ownership_not_renewed") > said + 8,
                "it says so for long",
            )
        finally:
            client.config_set("maxmemory", 0)
    stream.ended_once()


def test_a_redis_that_comes_back_empty_has_its_window_back_within_five_seconds(
    system: System, servers: Servers
) -> None:
    """Of a hundred thousand waiting runs. The last test of its system: they stay."""
    system.console.run(MAKE_WAITING, number=WAITING)
    took_s = []
    for _ in range(2):
        servers.redis.kill()
        servers.redis.start()
        began = monotonic()
        system.wait_for(lambda: waiting_in_window(servers.redis) >= WAITING, "the window is back")
        took_s.append(monotonic() - began)
    print(f"the window of {WAITING} runs was back after {took_s} s")  # noqa: T201 -- pytest -s
    assert min(took_s) < 5.0


def waiting_in_window(redis: OwnRedis) -> int:
    with redis.client() as client, client.pipeline(transaction=False) as pipe:
        for name in client.scan_iter(match="punctual:{*}:b:*", count=1000):
            pipe.zcard(name)
        return sum(pipe.execute())
