"""Redis, in one place: the connection, the keys and the scripts.

All keys of a shard carry the same hash tag, ``{<shard>}``, so that they lie in one slot of a
Redis Cluster. Every failure to reach Redis is a StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.resources import read_text

Call = tuple[Sequence[str], Sequence[Any]]


class StoreUnavailable(RetryableError):
    """Redis does not answer."""


class Script:
    """A Lua script that lies in ``package`` at ``path``; known to Redis by its digest."""

    def __init__(self, package: str, path: str) -> None:
        self.text = read_text(package, path)
        self.sha = ""


class Store:
    """A connection pool to the Redis at ``url``; ``namespace`` is the first part of every key."""

    def __init__(self, url: str, namespace: str, *, timeout_s: float = 5.0) -> None:
        self.namespace = namespace
        self._redis = redis.Redis.from_url(
            url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
        )

    def key(self, shard: int, *parts: str) -> str:
        return ":".join((self.namespace, f"{{{shard}}}", *parts))

    def shared_key(self, *parts: str) -> str:
        """A key that belongs to no shard."""
        return ":".join((self.namespace, "{all}", *parts))

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return self.run_each(script, [(keys, arguments)])[0]

    def run_each(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        """Run ``script`` once for each of ``calls``, all in one round trip."""
        with self._reachable():
            if not script.sha:
                script.sha = str(self._redis.script_load(script.text))
            try:
                return self._evaluate(script, calls)
            except NoScriptError:
                self._redis.script_load(script.text)
                return self._evaluate(script, calls)

    def _evaluate(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        with self._redis.pipeline(transaction=False) as pipe:
            for keys, arguments in calls:
                pipe.evalsha(script.sha, len(keys), *keys, *arguments)
            return pipe.execute()

    def batch(self, fill: Callable[[Any], object], *, atomic: bool = False) -> list[Any]:
        """``fill`` queues commands on a pipeline; one round trip, and one transaction where ``atomic``."""
        with self._reachable(), self._redis.pipeline(transaction=atomic) as pipe:
            fill(pipe)
            return pipe.execute()

    def now_ms(self) -> int:
        """Redis' own clock, milliseconds since 1970."""
        with self._reachable():
            seconds, micros = self._redis.time()
        return seconds * 1000 + micros // 1000

    def delete_namespace(self) -> None:
        """Delete every key of this namespace (tests; a namespace that is given up)."""
        with self._reachable():
            for name in self._redis.scan_iter(match=f"{self.namespace}:*", count=1000):
                self._redis.delete(name)

    def close(self) -> None:
        self._redis.close()

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except RedisError as error:
            raise StoreUnavailable(f"Redis does not answer: {error} (REDIS_URL)") from error


@cache
def default_store() -> Store:
    """The store that the settings name; one pool for each process."""
    from django.conf import settings

    return Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE)
