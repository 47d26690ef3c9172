"""Proxies before RabbitMQ that know a little of AMQP, and one that speaks TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from struct import pack

from tests.integration.proxy import TcpProxy
from tests.relay import shut

_CONNECTION_CLASS = 10
_BLOCKED, _UNBLOCKED = 60, 61


class AmqpProxy(TcpProxy):
    """Counts what the client writes, cuts it off in the middle, holds the server's words, adds to them."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.written = 0
        self.connections = 0
        self.cut_at: int | None = None
        self._client: socket.socket | None = None
        self._flowing = threading.Event()
        self._flowing.set()

    def hold(self) -> None:
        """What the server says is kept back from now on."""
        self._flowing.clear()

    def let_go(self) -> None:
        self._flowing.set()

    def say_blocked(self) -> None:
        """What RabbitMQ says to a publisher when it runs short of memory or disk."""
        self._say(_BLOCKED, b"\x0dlow on memory")

    def say_unblocked(self) -> None:
        self._say(_UNBLOCKED, b"")

    def _say(self, method: int, arguments: bytes) -> None:
        assert self._client is not None
        content = pack(">HH", _CONNECTION_CLASS, method) + arguments
        self._client.sendall(pack(">BHI", 1, 0, len(content)) + content + b"\xce")

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        self._client = client
        self.connections += 1
        for run in (self._pass_up, self._pass_down):
            threading.Thread(target=run, args=(client, server), daemon=True).start()

    def _pass_up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                room = len(data) if self.cut_at is None else self.cut_at - self.written
                self.written += len(data)
                server.sendall(data[:room])
                if room < len(data):
                    self.cut_at = None
                    break
        except OSError:  # cut
            pass
        shut(client)
        shut(server)

    def _pass_down(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                self._flowing.wait()
                client.sendall(data)
        except OSError:  # cut
            pass
        shut(client)
        shut(server)


class TlsProxy:
    """TLS towards the client, plain towards the server. ``authority``: a file that makes it trusted."""

    def __init__(self, host: str, port: int, folder: Path) -> None:
        self._server = host, port
        self.authority = folder / "certificate.pem"
        key = folder / "key.pem"
        command = (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
            " -addext subjectAltName=IP:127.0.0.1 -keyout"
        )
        subprocess.run(
            [*command.split(), key, "-out", self.authority], check=True, capture_output=True, timeout=60
        )
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.authority, key)
        self._loop = asyncio.new_event_loop()
        self._listening: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> int:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        return int(self._listening.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        assert self._listening is not None
        self._listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upward = await asyncio.open_connection(*self._server)
        await asyncio.gather(_pass(reader, upward[1]), _pass(upward[0], writer), return_exceptions=True)


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    finally:
        sink.close()
