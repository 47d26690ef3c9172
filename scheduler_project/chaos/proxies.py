"""TCP proxies before the servers: what passes through them can be cut, kept back and refused.

To keep back is what a network does that drops everything: nobody is told, and what was sent arrives later.
A connection that is made meanwhile is taken and hears nothing.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from random import Random
from urllib.parse import urlsplit

from scheduler_project.kernel.errors import InvalidValue

Choose = Callable[[], bool]
ONE_HOST = {"postgresql", "postgres", "redis", "rediss", "pyamqp", "amqps"}


class Link:
    """One connection of a client, and the one that was made for it to the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._ends = client, server
        self._flows = threading.Event()
        self._flows.set()
        self.open = True

    def start(self) -> None:
        one, other = self._ends
        for source, sink in ((one, other), (other, one)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def hold(self) -> None:
        self._flows.clear()

    def let_go(self) -> None:
        self._flows.set()

    def cut(self) -> None:
        self.open = False
        self._flows.set()
        for end in self._ends:
            _shut(end)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # cut
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        self.cut()


class Proxy:
    """Before the server at ``host`` and ``port``; listens on ``self.port`` of 127.0.0.1."""

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._links: list[Link] = []
        self._lock = threading.Lock()
        self._refusing = False
        self._holds: Choose | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, chosen: Choose) -> None:
        """Close the connections that are chosen; new ones are let in."""
        for link in self._open():
            if chosen():
                link.cut()

    def hold(self, chosen: Choose) -> None:
        """Nothing passes over those that are chosen, of those that are there and those that come."""
        self._holds = chosen
        for link in self._open():
            if chosen():
                link.hold()

    def refuse(self) -> None:
        """Close every connection, and each that is made."""
        self._refusing = True
        self.cut(lambda: True)  # one that is being made is closed by _take

    def restore(self) -> None:
        """All is well again: what was kept back arrives."""
        self._refusing, self._holds = False, None
        for link in self._open():
            link.let_go()

    def close(self) -> None:
        self.refuse()
        _shut(self._listener)

    def _open(self) -> list[Link]:
        with self._lock:
            self._links = [link for link in self._links if link.open]
            return list(self._links)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._take(client)

    def _hold_new(self, link: Link) -> None:
        holds = self._holds
        if holds is not None and holds():
            link.hold()
            if self._holds is not holds:  # restored in between
                link.let_go()

    def _is_refusing(self) -> bool:
        return self._refusing

    def _take(self, client: socket.socket) -> None:
        if self._is_refusing():
            _shut(client)
            return
        try:
            server = socket.create_connection(self._server, timeout=10)
        except OSError:
            _shut(client)
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(client, server)
        with self._lock:
            self._links.append(link)
        if self._is_refusing():
            link.cut()
        self._hold_new(link)
        link.start()


def proxy_before(url: str, usual_port: int) -> tuple[Proxy, str]:
    """A proxy before the server of ``url``, and the URL that leads through it.

    InvalidValue where it is no address of TCP, whose connections could be cut.
    """
    scheme, _, rest = url.partition("://")
    parts = urlsplit("//" + rest)
    if not parts.hostname or scheme not in ONE_HOST or "," in parts.netloc:
        raise InvalidValue(f"{scheme}://…: chaos cuts connections of TCP: it needs an address with one host")
    proxy = Proxy(parts.hostname, parts.port or usual_port)
    credentials, at, _ = parts.netloc.rpartition("@")
    path = rest[len(parts.netloc) :]
    return proxy, f"{scheme}://{credentials}{at}127.0.0.1:{proxy.port}{path}"


def some(random: Random, share: float) -> Choose:
    """Chooses that share of what it is asked about."""
    return lambda: random.random() < share


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):  # not connected any more
        end.shutdown(socket.SHUT_RDWR)
    end.close()
