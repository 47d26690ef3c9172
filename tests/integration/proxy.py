"""A TCP proxy before a server: its connections can be cut, and the server be away for a while."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.relay import relay, shut


class TcpProxy:
    """``at``: the address that it listens at."""

    def __init__(self, host: str, port: int, at: str = "127.0.0.1") -> None:
        self._server = host, port
        self._at = at
        self._pairs: list[socket.socket] = []
        self._away = threading.Event()
        self._listener = socket.create_server((at, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def before(self, url: str) -> str:
        """The URL that leads through it, where ``url`` leads to its server."""
        parts = urlsplit("//" + url.split("://", 1)[1])
        return url.replace(f"{parts.netloc.rpartition('@')[2]}/", f"{self._at}:{self.port}/", 1)

    def cut(self) -> None:
        """Close all connections; new ones are let in."""
        pairs, self._pairs = self._pairs, []
        for connection in pairs:
            shut(connection)

    def go_away(self) -> None:
        """Close all connections and every new one."""
        self._away.set()
        self.cut()

    def come_back(self) -> None:
        self._away.clear()

    def close(self) -> None:
        self.go_away()
        shut(self._listener)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                if self._away.is_set():
                    shut(client)
                    continue
                server = socket.create_connection(self._server)
                self._pairs += [client, server]
                self._join(client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        relay(client, server)


def server_of(url: str) -> tuple[str, int]:
    """Host and port that ``url`` names."""
    parts = urlsplit("//" + url.split("://", 1)[1])
    return parts.hostname or "127.0.0.1", parts.port or 0


@contextlib.contextmanager
def proxy_before(url: str, at: str = "127.0.0.1") -> Iterator[tuple[TcpProxy, str]]:
    """A proxy before the server that ``url`` names with its port, and the URL that leads through it."""
    proxy = TcpProxy(*server_of(url), at)
    try:
        yield proxy, proxy.before(url)
    finally:
        proxy.close()
