"""A TCP proxy before a server: its connections can be cut, and the server be away for a while."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.relay import relay, shut


class TcpProxy:
    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._pairs: list[socket.socket] = []
        self._away = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

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
                relay(client, server)
