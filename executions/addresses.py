"""Addresses of servers of which there are several, as one URL (pure; no client is imported).

Redis                 ``redis://host:port/database`` (``rediss://``: TLS), ``unix:///path?db=1``
Redis with Sentinels  ``redis+sentinel://user:password@one:26379,two:26379/name-of-the-primary/database``
Redis Cluster         ``redis+cluster://user:password@one:6379,two:6379`` (any of its nodes, for a start)
RabbitMQ              ``pyamqp://user:password@one:5672,two:5672/virtual-host``

User, password and query hold for every host; ``rediss+`` before ``sentinel`` or ``cluster`` means TLS.
``sentinel_username`` and ``sentinel_password`` in the query are for the Sentinels themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

SENTINEL_PORT, REDIS_PORT, AMQP_PORT = 26379, 6379, 5672
DEFAULT_PORTS = {
    "pyamqp": AMQP_PORT,
    "amqp": AMQP_PORT,
    "amqps": 5671,
    "redis+sentinel": SENTINEL_PORT,
    "rediss+sentinel": SENTINEL_PORT,
}
"""By scheme; Redis' own for every other."""
SEVERAL = frozenset({*DEFAULT_PORTS, "redis+cluster", "rediss+cluster"})
"""The schemes of which a URL may name several hosts."""
_SENTINELS_OWN = {"sentinel_username": "username", "sentinel_password": "password"}

Place = tuple[str, int]


class Kind(StrEnum):
    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """What a REDIS_URL says. ``url``: as Redis clients read it, with the first host.

    ``hosts``: the Sentinels, or the nodes of a cluster to begin with; ``primary``: the name by which the
    Sentinels know it; ``sentinel_login``: username and password at the Sentinels, where given.
    """

    kind: Kind
    url: str
    hosts: tuple[Place, ...] = ()
    primary: str = ""
    sentinel_login: tuple[tuple[str, str], ...] = ()


def read_redis(url: str) -> RedisAddress:
    """ValueError, in words that hold nothing of the URL, where it cannot be one."""
    parts = urlsplit(url)
    plain, _, kind = parts.scheme.partition("+")
    if not kind:
        return RedisAddress(Kind.SINGLE, url)
    hosts = hosts_of(url)
    primary, _, database = parts.path.strip("/").partition("/")
    if kind == Kind.CLUSTER:
        if primary:
            raise ValueError("a cluster has no numbered databases, and the URL names one")
        return RedisAddress(Kind.CLUSTER, _with_host(parts, plain, hosts[0], "", parts.query), hosts)
    if not primary:
        raise ValueError("the URL does not say by which name the Sentinels know the primary")
    query = parse_qsl(parts.query, keep_blank_values=True)
    return RedisAddress(
        Kind.SENTINEL,
        _with_host(
            parts, plain, hosts[0], database, urlencode([p for p in query if p[0] not in _SENTINELS_OWN])
        ),
        hosts,
        unquote(primary),
        tuple((_SENTINELS_OWN[name], value) for name, value in query if name in _SENTINELS_OWN),
    )


def hosts_of(url: str) -> tuple[Place, ...]:
    """The hosts and ports between ``://`` and the path. ValueError where one is none."""
    parts = urlsplit(url)
    usual = DEFAULT_PORTS.get(parts.scheme, REDIS_PORT)
    return tuple(_place(text, usual) for text in parts.netloc.rpartition("@")[2].split(","))


def each_host(url: str) -> list[str]:
    """``url`` once for each of its hosts."""
    parts = urlsplit(url)
    return [_with_host(parts, parts.scheme, host, parts.path[1:], parts.query) for host in hosts_of(url)]


def _place(text: str, usual: int) -> Place:
    one = urlsplit(f"//{text}")
    try:
        port = usual if one.port is None else one.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("the URL's port is not a whole number from 1 to 65535")
    if not one.hostname:
        raise ValueError("the URL names no host")
    return one.hostname, port


def _with_host(parts: SplitResult, scheme: str, place: Place, path: str, query: str) -> str:
    login = parts.netloc.rpartition("@")[0]
    host = f"[{place[0]}]" if ":" in place[0] else place[0]
    text = f"{scheme}://{login}@{host}" if login else f"{scheme}://{host}"
    return f"{text}:{place[1]}/{path}" + (f"?{query}" if query else "")
