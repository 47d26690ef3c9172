"""Where the tests find PostgreSQL, Redis, RabbitMQ and the Docker engine, and a place of their own in each.

The addresses come from DATABASE_URL, REDIS_URL, BROKER_URL and DOCKER_HOST, or are the usual local
ports. They name servers, not data: no test touches the database, the Redis database or the virtual
host that an address names. Each session makes its own and removes it again:

* PostgreSQL: a database (``database``).
* Redis: one of the server's numbered databases that is empty and that nobody holds (``redis_database``).
* RabbitMQ: a virtual host (``virtual_host``), through the management API where it answers, otherwise
  through ``rabbitmqctl``. There is no third way: sessions that share a virtual host would meet.

What a killed session left behind is removed by ``sweep_leftovers`` (names carry their time of birth),
and a Redis database that it held is free again as soon as its connection is gone.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import docker
import psycopg
import redis
from kombu import Connection

from scheduler_project.kernel.clock import utcnow
from scheduler_project.places import servers
from scheduler_project.places.servers import (
    POSTGRES_URLS,
    broker_url,
    postgres_url,
    redis_url,
    usual_postgres,
    with_path,
)

# What is found and made where ``manage.py chaos`` finds and makes it is under its names here too.
__all__ = ["POSTGRES_URLS", "broker_url", "postgres_url", "redis_url", "with_path"]

DOCKER_HOST = "unix:///var/run/docker.sock"

PREFIX = "punctual_test_"
_HOLDER = "punctual-test:holder-of-database:{}"
# Takes a database from a holder that is gone, unless another session was faster.
_TAKE_OVER = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0"
)
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


def free_port() -> int:
    """A port of this host on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def docker_host(env: Mapping[str, str] = os.environ) -> str:
    return env.get("DOCKER_HOST") or DOCKER_HOST


def unique_name(now: datetime | None = None) -> str:
    """A name nobody else has: letters, digits and ``_``; it carries its time of birth in Unix seconds."""
    return servers.unique_name(PREFIX, now)


def is_leftover(name: str, older_than: timedelta, now: datetime) -> bool:
    """Whether ``name`` is ours (or Django's ``test_`` copy of it) and was born before that long ago."""
    return servers.is_leftover(name, PREFIX, older_than, now)


# PostgreSQL


def database(
    name: str | None = None, url: str | None = None, *, template: str = "template0"
) -> AbstractContextManager[str]:
    """The address of a new database, which is dropped at the end whoever is still connected.

    It is empty, or a copy of the database ``template``, to which nobody may be connected.
    """
    return servers.database(name or unique_name(), url or postgres_url(), template=template)


def database_names(url: str | None = None) -> list[str]:
    return servers.database_names(url or postgres_url())


# Redis


@contextmanager
def redis_database(url: str | None = None, *, wait_s: float = 60.0) -> Iterator[str]:
    """The address of an empty numbered database that no other session holds; emptied again at the end.

    The holder is a connection with a name of its own, so a killed session frees its number at once.
    Waits up to ``wait_s`` seconds for a free number; RuntimeError where none comes.
    Publish/subscribe channels know no database numbers: name them after the number or the session.
    """
    server, token = url or redis_url(), secrets.token_hex(8)
    # Always database 0, whatever the address names: a session inside a session must see the same holders.
    holder = redis.Redis.from_url(
        with_path(server, "0"), client_name=token, single_connection_client=True, decode_responses=True
    )
    with holder:
        number = _wait_for_number(holder, server, token, wait_s)
        try:
            yield with_path(server, str(number))
        finally:
            _empty(server, number)
            holder.eval(_RELEASE, 1, _HOLDER.format(number), token)


def _wait_for_number(holder: redis.Redis, server: str, token: str, wait_s: float) -> int:
    for _ in range(max(1, int(wait_s * 4))):
        number = _hold_a_number(holder, server, token)
        if number is not None:
            return number
        time.sleep(0.25)
    raise RuntimeError(
        f"every database of {server} is in use; wait for the other test sessions or add databases"
    )


def _hold_a_number(holder: redis.Redis, server: str, token: str) -> int | None:
    numbers = range(1, _count_of_databases(holder))
    return next((number for number in numbers if _hold(holder, server, number, token)), None)


def _count_of_databases(client: redis.Redis) -> int:
    settings = cast(dict[str, str], client.config_get("databases"))
    return int(settings.get("databases", 16))


def _hold(holder: redis.Redis, server: str, number: int, token: str) -> bool:
    """Hold ``number``: it is free and empty, or its holder's connection is gone (then it is emptied)."""
    key = _HOLDER.format(number)
    if holder.set(key, token, nx=True):
        if _is_empty(server, number):
            return True
        holder.eval(_RELEASE, 1, key, token)  # somebody's data, not ours to delete
        return False
    other = holder.get(key)
    clients = cast(list[dict[str, Any]], holder.client_list())
    if other is None or any(client["name"] == other for client in clients):
        return False
    if not holder.eval(_TAKE_OVER, 1, key, cast(str, other), token):
        return False
    _empty(server, number)
    return True


def _is_empty(server: str, number: int) -> bool:
    with redis.Redis.from_url(with_path(server, str(number))) as client:
        return bool(client.dbsize() == 0)


def _empty(server: str, number: int) -> None:
    with redis.Redis.from_url(with_path(server, str(number))) as client:
        client.flushdb()


# RabbitMQ


@contextmanager
def virtual_host(name: str | None = None, url: str | None = None) -> Iterator[str]:
    """The address of a new virtual host in which the address's user may do everything; deleted at the end.

    RuntimeError, with what to do, where this process may not make one.
    """
    with servers.virtual_host(name or unique_name(), url or broker_url()) as own:
        _log_in(own)
        yield own


def _log_in(url: str) -> None:
    with Connection(url, connect_timeout=5) as connection:
        connection.connect()


# All together


@dataclass(frozen=True)
class Services:
    """Addresses of one session's own places, as DATABASE_URL, REDIS_URL and BROKER_URL take them."""

    database_url: str
    redis_url: str
    broker_url: str

    def as_environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "BROKER_URL": self.broker_url,
        }


@contextmanager
def own_services(template: str = "template0") -> Iterator[Services]:
    """A database (a copy of ``template``), a Redis database and a virtual host for one session."""
    with ExitStack() as stack:
        name = unique_name()
        yield Services(
            database_url=stack.enter_context(database(name, template=template)),
            redis_url=stack.enter_context(redis_database()),
            broker_url=stack.enter_context(virtual_host(name)),
        )


def sweep_leftovers(older_than: timedelta = servers.LEFT_AFTER, now: datetime | None = None) -> list[str]:
    """Remove the databases and virtual hosts of sessions that were killed; says which. Takes a second."""
    return servers.sweep(PREFIX, older_than, now or utcnow(), postgres_url(), broker_url())


# Does it answer?


def ask_postgres() -> None:
    """Returns when a query was answered; raises the driver's error otherwise (as the others below do)."""
    usual_postgres.cache_clear()  # it may have been started, or let us in, since it was last asked
    with psycopg.connect(postgres_url(), connect_timeout=3) as connection:
        connection.execute("SELECT 1")


def ask_redis() -> None:
    with redis.Redis.from_url(redis_url(), socket_timeout=3, socket_connect_timeout=3) as client:
        client.ping()


def ask_rabbitmq() -> None:
    _log_in(broker_url())


def ask_docker() -> None:
    client = docker.DockerClient(base_url=docker_host(), timeout=5)
    try:
        client.ping()
    finally:
        client.close()
