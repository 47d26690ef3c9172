"""What the proxies of the tests have in common: bytes passed on both ways until somebody cuts them."""

from __future__ import annotations

import contextlib
import socket
import threading


def relay(one: socket.socket, other: socket.socket) -> None:
    """Pass everything on between two connections, in threads, until either ends."""
    for source, sink in ((one, other), (other, one)):
        threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # not connected any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):  # cut
        while data := source.recv(65536):
            sink.sendall(data)
    shut(sink)
    shut(source)
