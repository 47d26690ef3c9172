"""Parts of which there are several, by one URL: where one dies, runs go on with the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.test_runs import body
from tests.faults.ledgers import Ledger, all_normal
from tests.integration.proxy import TcpProxy, proxy_before
from tests.redis_servers import cluster, with_sentinels
from tests.system import System, running_system

RUNS = 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("several")


def test_the_primary_of_sentinels_dies_under_window_and_broker(tmp_path: Path) -> None:
    """Window, claims and the messages themselves are on it."""
    with ExitStack() as stack:
        servers = stack.enter_context(with_sentinels(tmp_path / "redis"))
        system = stack.enter_context(
            running_system(
                tmp_path,
                REDIS_URL=servers.url,
                BROKER_URL=servers.url.removesuffix("/0") + "/1",
                PUNCTUAL_RUN_LEASE="3s",
            )
        )
        system.start_all()
        system.wait_until_ready()
        _goes_on_after(system, tmp_path, servers.primary.kill)


def test_a_node_of_a_cluster_dies(tmp_path: Path) -> None:
    """Each of the three has shards of the window; its replica takes them over."""
    with ExitStack() as stack:
        servers = stack.enter_context(cluster(tmp_path / "redis"))
        system = stack.enter_context(running_system(tmp_path, REDIS_URL=servers.url, PUNCTUAL_RUN_LEASE="3s"))
        system.start_all()
        system.wait_until_ready()
        holders = {servers.holder(f"punctual:{{{shard}}}:buckets").port for shard in range(16)}
        assert len(holders) == 3, "the shards lie on all of them"
        _goes_on_after(system, tmp_path, servers.holder("punctual:{0}:buckets").kill)


def _goes_on_after(system: System, tmp_path: Path, kill: Callable[[], None]) -> None:
    """Runs that ran before, were waiting in the window meanwhile, and come afterwards: all end."""
    ledger = Ledger(tmp_path / "ledger")
    before = [body(f"before {n}", ledger.entered(":"), "now") for n in range(3)]
    assert all_normal(system.wait_all_terminal(system.create_jobs(*before), 3))
    meanwhile = [body(f"meanwhile {n}", ledger.entered(":"), {"after": "2s"}) for n in range(RUNS)]
    jobs = system.create_jobs(*meanwhile)
    time.sleep(1)  # they are in the window
    kill()
    assert all_normal(system.wait_all_terminal(jobs, RUNS))
    after = system.create_jobs(body("after", ledger.entered(":"), "now"))
    assert all_normal(system.wait_all_terminal(after, 1))
    assert set(ledger.begun()) == {*(str(one["name"]) for one in before + meanwhile), "after"}


@pytest.fixture(scope="module")
def hosts(home: Path) -> Iterator[tuple[System, list[TcpProxy]]]:
    """A system that knows its RabbitMQ and its PostgreSQL by two addresses each."""
    with ExitStack() as stack:
        system = stack.enter_context(running_system(home))
        broker, database = system.env["BROKER_URL"], system.env["DATABASE_URL"]
        brokers = [stack.enter_context(proxy_before(broker)) for _ in range(2)]
        databases = [stack.enter_context(proxy_before(database)) for _ in range(2)]
        own = {
            "BROKER_URL": _of_all(broker, [proxy for proxy, _ in brokers]),
            "DATABASE_URL": _of_all(database, [proxy for proxy, _ in databases])
            + "?target_session_attrs=read-write",
        }
        system.start("worker", BROKER_URL=own["BROKER_URL"])
        for kind in ("beat", "recorder", "auditor"):
            system.start(kind, **own)
        system.wait_until_ready()
        yield system, [brokers[0][0], databases[0][0]]


def _of_all(url: str, proxies: list[TcpProxy]) -> str:
    scheme, _, rest = url.partition("://")
    login, _, place = rest.rpartition("@")
    path = place.partition("/")[2]
    return f"{scheme}://{login}@{','.join(f'127.0.0.1:{proxy.port}' for proxy in proxies)}/{path}"


def test_the_first_hosts_of_rabbitmq_and_postgresql_go_and_the_second_do(
    hosts: tuple[System, list[TcpProxy]],
) -> None:
    system, first = hosts
    assert all_normal(system.wait_all_terminal(system.create_jobs(body("before", ":", "now")), 1))
    for proxy in first:
        proxy.go_away()
    jobs = system.create_jobs(*[body(f"after {n}", ":", {"after": "1s"}) for n in range(RUNS)])
    assert all_normal(system.wait_all_terminal(jobs, RUNS))
    for proxy in first:
        proxy.come_back()
