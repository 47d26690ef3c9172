"""Redis servers that a test starts: one that may be spoilt, three with Sentinels, a cluster of three.

They keep nothing and listen on loopback. Their timeouts are a second, so that a failover takes two or three.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.cluster import RedisCluster
from redis.crc import key_slot

from scheduler_project.kernel.clock import monotonic
from tests.own_servers import OwnRedis
from tests.services import free_port

PRIMARY = "jobs"
"""What the Sentinels call it."""
_TIMEOUT_MS = 1000


class RedisServer(OwnRedis):
    """One that runs, and a client of it."""

    def __init__(self, home: Path, *options: str) -> None:
        super().__init__(home, "--repl-diskless-sync-delay", "0", *options)
        self.redis = redis.Redis(port=self.port, decode_responses=True)
        self.start()

    def in_sync(self) -> bool:
        """It is a primary, or a replica that has all that its primary had."""
        facts = self.redis.info("replication")
        return "up" in (facts.get("master_link_status"), "up" if facts["role"] == "master" else "")

    def kill(self) -> None:
        super().kill()
        self.redis.close()


class _Sentinel(RedisServer):
    def __init__(self, home: Path, primary: int) -> None:
        home.mkdir(parents=True)
        self._file = home / "sentinel.conf"
        self._file.write_text(
            f"sentinel monitor {PRIMARY} 127.0.0.1 {primary} 2\n"
            f"sentinel down-after-milliseconds {PRIMARY} {_TIMEOUT_MS}\n"
            f"sentinel failover-timeout {PRIMARY} {3 * _TIMEOUT_MS}\n"
        )
        super().__init__(home)

    def _launch(self) -> subprocess.Popen[bytes]:
        words = ["--sentinel", "--port", str(self.port), "--bind", "127.0.0.1"]
        return self._run(["redis-server", self._file, *words])


class WithSentinels:
    """A primary and a replica, and three Sentinels that see to it that one of them takes writes."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self.primary = _started(stack, RedisServer(home / "primary"))
        self.replica = _started(
            stack, RedisServer(home / "replica", "--replicaof", f"127.0.0.1 {self.primary.port}")
        )
        self.sentinels = [
            _started(stack, _Sentinel(home / f"sentinel{n}", self.primary.port)) for n in range(3)
        ]
        wait_for(self._complete, "three Sentinels that know each other and the replica")
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"redis+sentinel://{places}/{PRIMARY}/0"

    def _complete(self) -> bool:
        found: list[Any] = [sentinel.redis.sentinel_master(PRIMARY) for sentinel in self.sentinels]
        known = all(one["num-other-sentinels"] == 2 and one["num-slaves"] == 1 for one in found)
        return known and self.replica.in_sync()


class Cluster:
    """Three primaries, each with a replica."""

    def __init__(self, stack: ExitStack, home: Path, replicas: int = 1) -> None:
        words = [*("--cluster-enabled", "yes"), *("--cluster-node-timeout", str(_TIMEOUT_MS))]
        count = 3 * (1 + replicas)
        self.nodes = [
            _started(stack, RedisServer(home / f"node{n}", *words, "--cluster-port", str(free_port())))
            for n in range(count)
        ]
        places = [f"127.0.0.1:{node.port}" for node in self.nodes]
        subprocess.run(
            [
                *("redis-cli", "--cluster", "create", *places, "--cluster-yes"),
                *("--cluster-replicas", str(replicas)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        wait_for(self.complete, "a cluster with all slots served and all replicas in step")
        self.url = f"redis+cluster://{','.join(places)}"

    def complete(self) -> bool:
        alive = [node for node in self.nodes if node.alive]
        return all(node.redis.cluster("info")["cluster_state"] == "ok" and node.in_sync() for node in alive)

    def holder(self, key: str) -> RedisServer:
        """The primary in whose keeping ``key`` is."""
        slot = key_slot(key.encode())
        alive = next(node for node in self.nodes if node.alive)
        with RedisCluster("127.0.0.1", alive.port) as client:
            port = client.nodes_manager.get_node_from_slot(slot).port
        return next(node for node in self.nodes if node.port == port)


@contextmanager
def redis_server(home: Path, *words: str) -> Iterator[RedisServer]:
    with ExitStack() as stack:
        yield _started(stack, RedisServer(home, *words))


@contextmanager
def with_sentinels(home: Path) -> Iterator[WithSentinels]:
    with ExitStack() as stack:
        yield WithSentinels(stack, home)


@contextmanager
def cluster(home: Path, replicas: int = 1) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, home, replicas)


def _started(stack: ExitStack, server: RedisServer) -> RedisServer:
    stack.callback(server.kill)
    return server


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    deadline = monotonic() + timeout_s
    while not condition():
        assert monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)
