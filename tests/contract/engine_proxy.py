"""A proxy before the engine's socket that can be cut: an engine that goes away and comes back."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from tests.relay import relay, shut


class EngineProxy:
    """Listens on a Unix socket and passes everything on to the engine's, until cut."""

    def __init__(self, path: Path, engine: str = "/var/run/docker.sock") -> None:
        self._path = path
        self._engine = engine
        self._pairs: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.restore()

    @property
    def host(self) -> str:
        return f"unix://{self._path}"

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
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
                relay(client, engine)
