"""What the proxies of the tests have in common: bytes passed on both ways until somebody cuts them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


def relay(
    one: socket.socket,
    other: socket.socket,
    asked: Callable[[bytes], object] = bytes,
    answered: Callable[[bytes], bytes] = bytes,
) -> None:
    """Pass everything on between two connections, in threads, until either ends.

    ``asked`` is called with what ``one`` sends; what ``other`` sends goes through ``answered``.
    """

    def look(data: bytes) -> bytes:
        asked(data)
        return data

    threading.Thread(target=_pump, args=(one, other, look), daemon=True).start()
    threading.Thread(target=_pump, args=(other, one, answered), daemon=True).start()


def shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # not connected any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _pump(source: socket.socket, sink: socket.socket, through: Callable[[bytes], bytes]) -> None:
    with contextlib.suppress(OSError):  # cut
        while data := source.recv(65536):
            sink.sendall(through(data))
    shut(sink)
    shut(source)
