"""Servers of a test's own, on ports of their own, to be killed, restarted, starved and emptied.

Redis and RabbitMQ are those of this machine's packages, PostgreSQL is that of the embedded wheel. None of
them shares anything with the servers in tests/services.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis
from kombu import Connection

from scheduler_project.kernel.clock import monotonic
from scheduler_project.standalone.postgres import binaries
from scheduler_project.standalone.server_user import server_user
from tests.services import free_port

PATIENCE_S = 60.0
RABBITMQ = Path("/usr/lib/rabbitmq/lib")
RABBITMQ_CONF = """\
listeners.tcp.1 = 127.0.0.1:{port}
log.file.level = info
"""
POSTGRES = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "io_method": "sync",
    "jit": "off",
}
OF_REDIS = ("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")


class OwnServer:
    """One server on ``port``; what it keeps and logs lies in ``home``."""

    def __init__(self, home: Path, name: str) -> None:
        self.home = home
        self.port = free_port()
        self.log = home / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        raise NotImplementedError

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        self._process = self._launch()

    def wait(self) -> None:
        assert self._process is not None
        give_up = monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, self.log.read_text()[-3000:]
            assert monotonic() < give_up, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9, with all that it has started."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def _launch(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _run(
        self,
        command: Sequence[str | Path],
        env: dict[str, str] | None = None,
        adopt: Callable[[], None] | None = None,
    ) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(part) for part in command],
                cwd=self.home,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=adopt,  # noqa: PLW1509 -- system calls alone
                start_new_session=True,
            )


class OwnRedis(OwnServer):
    """It keeps nothing: a restarted one is empty. ``options``: more of them, or others."""

    def __init__(self, home: Path, *options: str) -> None:
        super().__init__(home, "redis")
        self._options = [*OF_REDIS, *options]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            yield client

    def _launch(self) -> subprocess.Popen[bytes]:
        return self._run(["redis-server", *self._options, "--port", str(self.port), "--bind", "127.0.0.1"])

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


class OwnPostgres(OwnServer):
    def __init__(self, home: Path) -> None:
        super().__init__(home, "postgres")
        self._data = home / "data"
        self._user = server_user([home, binaries() / "postgres"])

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def _launch(self) -> subprocess.Popen[bytes]:
        if not self._data.exists():
            self._make()
        settings = [f"--{name}={value}" for name, value in POSTGRES.items()]
        command: list[str | Path] = [binaries() / "postgres", "-D", self._data, f"--port={self.port}"]
        return self._run([*command, *settings], self._environment(), self._user.adopt)

    def _end(self, number: signal.Signals) -> None:
        super()._end(signal.SIGINT if number == signal.SIGTERM else number)  # fast: it waits for no client

    def _make(self) -> None:
        self._data.mkdir(mode=0o700)
        self._user.take(self._data)
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = self._run(
            [binaries() / "initdb", "-D", self._data, *options], self._environment(), self._user.adopt
        )
        assert made.wait(PATIENCE_S) == 0, self.log.read_text()

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.defpath, "LANG": "C", "TZ": "UTC"}

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=3).close()
        except psycopg.OperationalError:
            return False
        return True


class OwnRabbitMQ(OwnServer):
    """``configuration``: more lines for rabbitmq.conf."""

    def __init__(self, home: Path, configuration: str = "") -> None:
        super().__init__(home, "rabbitmq")
        self._distribution = free_port()
        (home / "rabbitmq.conf").write_text(RABBITMQ_CONF.format(port=self.port) + configuration)
        (home / "enabled_plugins").write_text("[].\n")

    @property
    def url(self) -> str:
        return f"pyamqp://guest:guest@127.0.0.1:{self.port}//"

    def _launch(self) -> subprocess.Popen[bytes]:
        (server,) = RABBITMQ.glob("rabbitmq_server-*/sbin/rabbitmq-server")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),  # and with it a secret of its own between Erlang's nodes
            "RABBITMQ_NODENAME": f"own{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
        }
        return self._run([server], env)

    def _answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=2) as connection:
                connection.connect()
        except OSError:
            return False
        return True
