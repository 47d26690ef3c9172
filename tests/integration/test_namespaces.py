"""A wire of tests/namespaces.py: what goes through it, and what does not when it is pulled."""

from __future__ import annotations

import subprocess
import sys

from tests.integration.proxy import proxy_before
from tests.namespaces import Namespace, namespace
from tests.services import redis_url

ASK = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2) as connection:
        connection.sendall(b"PING\\r\\n")
        print(connection.recv(100)[:1])
except OSError as error:
    print(type(error).__name__)
"""


def answer(own: Namespace, address: str, port: int) -> str:
    command = [*own.prefix, sys.executable, "-c", ASK, address, str(port)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_a_pulled_wire_is_silent_and_the_others_are_not() -> None:
    with (
        namespace(["one", "other"]) as own,
        proxy_before(redis_url(), own.wires["one"].address) as (one, _),
        proxy_before(redis_url(), own.wires["other"].address) as (other, _),
    ):
        ways = {"one": one.port, "other": other.port}

        def answers() -> list[str]:
            return [answer(own, own.wires[name].address, port) for name, port in ways.items()]

        plus = answers()
        assert plus[0] == plus[1] and plus[0].startswith("b'")
        assert answer(own, "127.0.0.1", 6379) == "ConnectionRefusedError"  # it is another host's loopback
        with own.without("one"):
            assert answers() == ["TimeoutError", plus[1]]
        assert any(answers() == plus for _ in range(20))  # the neighbours have to find each other again
