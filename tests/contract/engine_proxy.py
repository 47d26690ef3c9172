"""A proxy before the engine's socket that can be cut: an engine that goes away and comes back."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from pathlib import Path

from tests.relay import relay, shut


class EngineProxy:
    """Listens on a Unix socket and passes everything on to the engine's, until cut.

    ``requests``: the first lines of all that came by. While ``mute_events``, no event gets through. While
    ``flowing`` is cleared, connections are taken and nothing is answered: an engine that hangs.
    ``date``: what answers have in place of their Date, where it is not empty.
    """

    def __init__(self, path: Path, engine: str = "/var/run/docker.sock") -> None:
        self._path = path
        self._engine = engine
        self.requests: list[str] = []
        self.mute_events = False
        self.flowing = threading.Event()
        self.flowing.set()
        self.date = ""
        self._pairs: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.restore()

    @property
    def host(self) -> str:
        return f"unix://{self._path}"

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        self.flowing.set()
        listener, self._listener = self._listener, None
        if listener is not None:
            self._path.unlink()
            shut(listener)
        pairs, self._pairs = self._pairs, []
        for connection in pairs:
            shut(connection)

    def restore(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen(64)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # cut
            while True:
                client, _ = listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(self._engine)
                self._pairs += [client, engine]
                self._relay(client, engine)

    def _relay(self, client: socket.socket, engine: socket.socket) -> None:
        here: list[str] = []

        def asked(data: bytes) -> None:
            found = re.findall(r"^(?:GET|HEAD|POST|PUT|DELETE) \S+", data.decode("latin-1"), re.MULTILINE)
            here.extend(found)
            self.requests.extend(found)
            self.flowing.wait()

        def answered(data: bytes) -> bytes:
            muted = self.mute_events and here and "/events" in here[-1] and not data.startswith(b"HTTP/")
            if self.date and data.startswith(b"HTTP/"):
                data = re.sub(rb"\r\nDate: [^\r]*", b"\r\nDate: " + self.date.encode(), data, count=1)
            return b"" if muted else data

        relay(client, engine, asked, answered)
