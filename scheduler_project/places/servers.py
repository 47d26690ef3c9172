"""Where the servers are, and a database and a virtual host of one's own in them.

The addresses come from DATABASE_URL, REDIS_URL and BROKER_URL, or are the usual local ports. They name
servers, not data. What is made has a name with its time of birth, by which ``sweep`` finds what a killed
process left behind.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.resources import read_queries
from scheduler_project.places.virtual_hosts import VirtualHosts, virtual_hosts_of

# The second is the role that `make services` makes where the superuser may not log in without a password.
POSTGRES_URLS = (
    "postgresql://postgres@127.0.0.1:5432/postgres",
    "postgresql://punctual_test:punctual_test@127.0.0.1:5432/postgres",
)
REDIS_URL = "redis://127.0.0.1:6379/0"
BROKER_URL = "pyamqp://guest:guest@127.0.0.1:5672//"
LEFT_AFTER = timedelta(hours=3)


def postgres_url(env: Mapping[str, str] = os.environ) -> str:
    """The server's address, at its database ``postgres``: the one in DATABASE_URL may not exist yet."""
    given = env.get("DATABASE_URL")
    return with_path(given, "postgres") if given else usual_postgres()


def redis_url(env: Mapping[str, str] = os.environ) -> str:
    return env.get("REDIS_URL") or REDIS_URL


def broker_url(env: Mapping[str, str] = os.environ) -> str:
    """The server's address, spelled ``pyamqp://`` (``amqp://`` may choose a library without confirms)."""
    return re.sub(r"^amqp://", "pyamqp://", env.get("BROKER_URL") or BROKER_URL)


def with_path(url: str, path: str) -> str:
    """``url`` with another database, number or virtual host; user, host, port and query stay."""
    scheme, rest = url.split("://", 1)
    parts = urlsplit("//" + rest)
    return f"{scheme}://{parts.netloc}/{path}" + (f"?{parts.query}" if parts.query else "")


@lru_cache(maxsize=1)
def usual_postgres() -> str:
    """The one of the usual addresses that lets us in; the first, where none does."""
    return next((url for url in POSTGRES_URLS if _lets_in(url)), POSTGRES_URLS[0])


def _lets_in(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


# --- Names -----------------------------------------------------------------------------------


def unique_name(prefix: str, now: datetime | None = None) -> str:
    """A name nobody else has: letters, digits and ``_``; it carries its time of birth in Unix seconds."""
    return f"{prefix}{int((now or utcnow()).timestamp())}_{os.getpid()}_{secrets.token_hex(4)}"


def is_leftover(name: str, prefix: str, older_than: timedelta, now: datetime) -> bool:
    """Whether ``name`` has ``prefix`` (or is Django's ``test_`` copy) and was born before that long ago."""
    match = re.match(rf"^(?:test_)?{re.escape(prefix)}(\d+)_", name)
    return match is not None and now - datetime.fromtimestamp(int(match[1]), UTC) > older_than


# --- Places ----------------------------------------------------------------------------------


@contextmanager
def database(name: str, server: str, *, template: str = "template0") -> Iterator[str]:
    """The address of a new database, which is dropped at the end whoever is still connected.

    It is empty, or a copy of the database ``template``, to which nobody may be connected.
    """
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'")
    with psycopg.connect(server, autocommit=True, connect_timeout=10) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield with_path(server, name)
    finally:
        drop_database(name, server)


def drop_database(name: str, server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def database_names(server: str) -> list[str]:
    query = read_queries(__package__, "sql/servers.sql")["database_names"]
    with psycopg.connect(server) as connection:
        return [row[0] for row in connection.execute(sql.SQL(query))]


@contextmanager
def virtual_host(name: str, server: str) -> Iterator[str]:
    """The address of a new virtual host in which the address's user may do everything; deleted at the end.

    RuntimeError, with what to do, where this process may not make one.
    """
    hosts: VirtualHosts = virtual_hosts_of(server)
    try:
        hosts.add(name)
        yield with_path(server, name)
    finally:
        hosts.drop(name)


def sweep(prefix: str, older_than: timedelta, now: datetime, postgres: str, broker: str) -> list[str]:
    """Remove the databases and virtual hosts that killed processes left; says which. Takes a second.

    ``broker``: empty where it has no virtual hosts.
    """
    gone = []
    for name in database_names(postgres):
        if is_leftover(name, prefix, older_than, now):
            drop_database(name, postgres)
            gone.append(f"database {name}")
    return gone + (_sweep_hosts(prefix, older_than, now, virtual_hosts_of(broker)) if broker else [])


def _sweep_hosts(prefix: str, older_than: timedelta, now: datetime, hosts: VirtualHosts) -> list[str]:
    left = [name for name in hosts.names() if is_leftover(name, prefix, older_than, now)]
    for name in left:
        hosts.drop(name)
    return [f"virtual host {name}" for name in left]
