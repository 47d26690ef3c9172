"""Redis, in one place: the connection, the keys and the scripts.

All keys of a shard carry the same hash tag, ``{<shard>}``, so that they lie in one slot of a
Redis Cluster. Every failure to reach Redis is a StoreUnavailable. The forms of an address, of one
server, of Sentinels or of a cluster, are in executions.addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.exceptions import NoScriptError, RedisClusterException, RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from executions.addresses import Kind, RedisAddress, read_redis
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.pulse import PULSE
from scheduler_project.kernel.resources import read_text

Call = tuple[Sequence[str], Sequence[Any]]

_LET_GO_AFTER_S, _SOON_S = 3.0, 5.0


class StoreUnavailable(RetryableError):
    """Redis does not answer."""


class Script:
    """A Lua script that lies in ``package`` at ``path``; known to Redis by its digest."""

    def __init__(self, package: str, path: str) -> None:
        self.text = read_text(package, path)
        self.sha = ""


class Store:
    """A connection pool to the Redis at ``url``; ``namespace`` is the first part of every key.

    ``rest_s``: for so long after it did not answer it is not asked, and is unavailable at once.
    It connects when it is first asked. ValueError where ``url`` is no address of a Redis.
    """

    def __init__(self, url: str, namespace: str, *, timeout_s: float = 5.0, rest_s: float = 0.0) -> None:
        self.namespace = namespace
        self._rest_s = rest_s
        self._rests_until = 0.0
        self._address = read_redis(url)
        self._timeout_s = timeout_s
        self._failing = _Failing()

    @cached_property
    def _redis(self) -> Any:
        return _client(self._address, self._timeout_s)

    def key(self, shard: int, *parts: str) -> str:
        return ":".join((self.namespace, f"{{{shard}}}", *parts))

    def shared_key(self, *parts: str) -> str:
        """A key that belongs to no shard."""
        return self.tagged_key("all", *parts)

    def tagged_key(self, tag: str, *parts: str) -> str:
        """A key of those that one script touches together: they lie in one slot."""
        return ":".join((self.namespace, f"{{{tag}}}", *parts))

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Run ``script`` once. (Without a pipeline, which costs the client as much again.)"""
        with self._reachable():
            command = self._command(script, keys, arguments)
            try:
                return self._redis.execute_command(*command)
            except NoScriptError:  # it was restarted
                self._redis.script_load(script.text)
                return self._redis.execute_command(*command)

    def run_each(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        """Run ``script`` once for each of ``calls``, all in one round trip."""
        with self._reachable():
            answers = self._evaluate(script, calls)
            unknown = [place for place, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            if unknown:  # it was restarted, or one of a cluster was: what others have done is not done again
                self._redis.script_load(script.text)
                again = self._evaluate(script, [calls[place] for place in unknown])
                for place, answer in zip(unknown, again, strict=True):
                    answers[place] = answer
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
            return answers

    def _command(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """What runs it: not pipe.evalsha(), which a cluster's pipeline refuses, although it knows where the
        keys lie. It is loaded before it is first run."""
        if not script.sha:
            script.sha = str(self._redis.script_load(script.text))
        return ("EVALSHA", script.sha, len(keys), *keys, *arguments)

    def _evaluate(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        """An answer for each call; an error is one."""
        commands = [self._command(script, keys, arguments) for keys, arguments in calls]
        with self._redis.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            return list(pipe.execute(raise_on_error=False))

    def batch(self, fill: Callable[[Any], object], *, atomic: bool = False) -> list[Any]:
        """``fill`` queues commands on a pipeline; one round trip, and one transaction where ``atomic``."""
        with self._reachable(), self._redis.pipeline(transaction=atomic) as pipe:
            fill(pipe)
            return list(pipe.execute())

    def now_ms(self) -> int:
        """Redis' own clock, milliseconds since 1970; of a cluster that of one of its nodes."""
        with self._reachable():
            seconds, micros = self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def servers(self, section: str = "default") -> dict[str, dict[str, Any]]:
        """What each server that takes writes says of itself (INFO), by host and port; "" where it is one."""
        with self._reachable():
            if self._address.kind is not Kind.CLUSTER:
                return {"": dict(self._redis.info(section))}
            return {
                node.name: dict(self._redis.info(section, target_nodes=node))
                for node in self._redis.get_primaries()
            }

    def delete_namespace(self) -> None:
        """Delete every key of this namespace, kombu's too (tests; a namespace that is given up)."""
        with self._reachable():
            for pattern in (f"{self.namespace}:*", f"{self.namespace}.bus.*"):
                for name in self._redis.scan_iter(match=pattern, count=1000):
                    self._redis.delete(name)

    def close(self) -> None:
        if "_redis" in self.__dict__:
            self._redis.close()

    def _start_anew_in_the_end(self) -> None:
        """A cluster's client that goes on failing is let go; the next question makes another.

        One was seen that held on to a node that was dead, two minutes after its replica had taken over.
        What others ask by it just now they ask to the end; it closes when nobody has it any more.
        """
        if self._address.kind is Kind.CLUSTER and self._failing.for_s() > _LET_GO_AFTER_S:
            self._failing = _Failing()
            self.__dict__.pop("_redis", None)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        if monotonic() < self._rests_until:
            raise StoreUnavailable("Redis did not answer a moment ago (REDIS_URL)")
        try:
            yield
        except (RedisError, RedisClusterException) as error:
            if isinstance(error, redis.ConnectionError | redis.TimeoutError | RedisClusterException):
                self._rests_until = monotonic() + self._rest_s
                self._start_anew_in_the_end()
            raise StoreUnavailable(f"Redis does not answer: {error} (REDIS_URL)") from error
        PULSE.progress()


class _Failing:
    """For how long a client has been failing, with no longer pause than ``_SOON_S`` between two failures."""

    def __init__(self) -> None:
        self._first = self._last = -_SOON_S

    def for_s(self) -> float:
        """To be asked at each failure."""
        now = monotonic()
        if now - self._last > _SOON_S:
            self._first = now
        self._last = now
        return now - self._first


def _client(address: RedisAddress, timeout_s: float) -> Any:
    """What is asked once is not asked again by the client: who asks decides that."""
    options: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }
    if address.kind is Kind.SINGLE:
        return redis.Redis.from_url(address.url, **options)
    if address.kind is Kind.CLUSTER:
        nodes = [
            ClusterNode(host, port)  # type: ignore[no-untyped-call]
            for host, port in address.hosts
        ]
        return RedisCluster.from_url(address.url, startup_nodes=nodes, **options)
    given = parse_url(address.url)  # type: ignore[no-untyped-call]
    for name in ("host", "port"):
        given.pop(name, None)
    secure = given.pop("connection_class", None) is not None
    secured = {name: value for name, value in given.items() if name.startswith("ssl_")}
    asked = {**options, **secured, **dict(address.sentinel_login), "ssl": secure}
    sentinels: Any = Sentinel(address.hosts, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
    return sentinels.master_for(address.primary, **options, **given, ssl=secure)


@cache
def default_store() -> Store:
    """The store that the settings name; one pool for each process."""
    from django.conf import settings

    return Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE)


@cache
def hasty_store() -> Store:
    """The same for what people look at: where Redis is silent, they wait half a second and not five.

    A page asks several times; once is enough to know.
    """
    from django.conf import settings

    return Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE, timeout_s=0.5, rest_s=1.0)
