"""What waits for a Redis that hangs."""

from __future__ import annotations

import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from executions.store import Store, StoreUnavailable
from scheduler_project.kernel.clock import monotonic
from tests.redis_servers import cluster, redis_server, wait_for
from tests.services import free_port


def test_one_that_hangs_is_waited_for_once_and_not_by_each_question() -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        address = f"redis://127.0.0.1:{hung.getsockname()[1]}/0"
        store = Store(address, "nobody", timeout_s=0.3, rest_s=60)
        began = monotonic()
        for _ in range(5):
            with pytest.raises(StoreUnavailable):
                store.now_ms()
        assert 0.3 <= monotonic() - began < 1.2


def test_one_that_speaks_tls_is_spoken_to_by_its_url(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*make.split(), *name, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    port = free_port()
    words = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    with redis_server(tmp_path, *words, "--tls-auth-clients", "no"):
        trusted = Store(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}", "any")
        assert trusted.now_ms() > 0
        trusted.close()
        with pytest.raises(StoreUnavailable, match="certificate"):
            Store(f"rediss://127.0.0.1:{port}/0", "any").now_ms()


def test_a_cluster_client_that_does_not_see_a_failover_is_made_anew(tmp_path: Path) -> None:
    """Seen once, under load; here it is kept from looking."""
    with cluster(tmp_path) as servers:
        store = Store(servers.url, "any")
        name = store.key(0, "x")
        store.batch(lambda pipe: pipe.set(name, 1))
        store._redis.nodes_manager.initialize = lambda *_, **__: None
        servers.holder(name).kill()

        def answers() -> bool:
            with suppress(StoreUnavailable):
                return bool(store.batch(lambda pipe: pipe.set(name, 2)))
            return False

        wait_for(answers, "it asks who has the key now", 30)
        store.close()
