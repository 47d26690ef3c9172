"""The proxies of chaos, before a real server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from scheduler_project.chaos.proxies import Proxy, proxy_before
from scheduler_project.kernel.errors import InvalidValue

PATIENCE_S = 10.0
A_WHILE_S = 0.2


class Echo(BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(4096):
            self.request.sendall(data)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = Proxy("127.0.0.1", server.server_address[1])
        yield found
        found.close()
        server.shutdown()


def client_of(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S)


def answers(client: socket.socket, text: bytes = b"hello") -> bool:
    client.sendall(text)
    return heard(client, len(text)) == text


def heard(client: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length and (piece := client.recv(length)):
        found += piece
    return found


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def all_of_them() -> bool:
    return True


def test_what_is_sent_arrives_and_comes_back(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        assert answers(client)
        assert answers(client, b"x" * 100_000)


def test_a_cut_closes_who_is_there_and_lets_others_in(proxy: Proxy) -> None:
    with client_of(proxy) as client, client_of(proxy) as spared:
        assert answers(client)
        assert answers(spared)
        turns = iter([True, False])
        proxy.cut(lambda: next(turns))
        assert is_closed(client)
        assert answers(spared)
        with client_of(proxy) as later:
            assert answers(later)


def test_what_is_kept_back_arrives_when_all_is_well_again(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        assert answers(client)
        proxy.hold(all_of_them)
        with client_of(proxy) as meanwhile:
            for held in (client, meanwhile):
                held.sendall(b"hello")
                held.settimeout(A_WHILE_S)
                with pytest.raises(TimeoutError):
                    held.recv(5)
            proxy.restore()
            for held in (client, meanwhile):
                held.settimeout(PATIENCE_S)
                assert heard(held, 5) == b"hello"


def test_who_is_refused_gets_in_again_later(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        assert answers(client)
        proxy.refuse()
        assert is_closed(client)
        with client_of(proxy) as refused:
            assert is_closed(refused)
        proxy.restore()
        with client_of(proxy) as later:
            assert answers(later)


@pytest.mark.parametrize(
    ("url", "through"),
    [
        (
            "postgresql://me:pw@127.0.0.1:5433/x?sslmode=disable",
            "postgresql://me:pw@127.0.0.1:{}/x?sslmode=disable",
        ),
        ("redis://127.0.0.1/3", "redis://127.0.0.1:{}/3"),
        ("pyamqp://guest:guest@[::1]:5672//", "pyamqp://guest:guest@127.0.0.1:{}//"),
    ],
)
def test_an_address_leads_through_the_proxy(url: str, through: str) -> None:
    proxy, found = proxy_before(url, 6379)
    assert found == through.format(proxy.port)
    proxy.close()


@pytest.mark.parametrize(
    "url",
    [
        "unix:///run/redis.sock",
        "postgresql:///x?host=/run",
        "postgresql://one,two/x",
        "sentinel://one:26379/x",
    ],
)
def test_an_address_without_one_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="an address with one host"):
        proxy_before(url, 1)
