"""A Redis whose time is a number: it runs the product's own Lua scripts, in Lua 5.1, on plain dictionaries.

It knows the commands that claims, the window and the engines use, and no others. Whatever has an end is
gone once ``now`` has passed it, as in Redis; ``forget`` is a FLUSHALL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from lupa import lua51

from executions.store import Call, Script, Store

_LUA = lua51.LuaRuntime(encoding=None, unpack_returned_tuples=True)
_FRAME = b"return function(call, KEYS, ARGV) local redis = {call = call}; %b\nend"
_FUNCTIONS: dict[str, Any] = {}


class SimulatedRedis:
    """``now``: milliseconds since 1970."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._values: dict[bytes, Any] = {}
        self._ends: dict[bytes, int] = {}

    def forget(self) -> None:
        self._values.clear()
        self._ends.clear()

    def moments(self) -> list[int]:
        """The scores of what waits in the window: when it is due, or when its lease ends."""
        waiting = [key for key in self._values if b"}:b:" in key or key.endswith(b"}:flight")]
        return [score for key in waiting for score in self._zset(key).values()]

    def call(self, name: bytes | str, *arguments: Any) -> Any:
        """One command; what is nil in Lua is False."""
        command = name.decode().lower() if isinstance(name, bytes) else name.lower()
        return getattr(self, f"_{command}")(*(_bytes(item) for item in arguments))

    def evaluate(self, text: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        if text not in _FUNCTIONS:
            _FUNCTIONS[text] = _LUA.execute(_FRAME % text.encode())
        tables = [_LUA.table_from([_bytes(item) for item in items]) for items in (keys, arguments)]
        return _answer(_FUNCTIONS[text](self._call_from_lua, *tables))

    def _call_from_lua(self, name: bytes, *arguments: Any) -> Any:
        found = self.call(name, *arguments)
        return _LUA.table_from(found) if isinstance(found, list) else found

    def _live(self, key: bytes) -> Any:
        if self._ends.get(key, self.now + 1) <= self.now:
            self._del(key)
        return self._values.get(key)

    def _zset(self, key: bytes) -> dict[bytes, int]:
        found = self._live(key)
        return {} if found is None else found

    def _time(self) -> list[bytes]:
        return [b"%d" % (self.now // 1000), b"%d" % (self.now % 1000 * 1000)]

    def _get(self, key: bytes) -> Any:
        found = self._live(key)
        return False if found is None else found

    def _mget(self, *keys: bytes) -> list[Any]:
        return [self._get(key) for key in keys]

    def _exists(self, key: bytes) -> int:
        return int(self._live(key) is not None)

    def _set(self, key: bytes, value: bytes, *ends: bytes) -> bytes:
        self._values[key] = value
        self._ends.pop(key, None)
        if ends:
            self._ends[key] = self.now + int(ends[1]) * {b"PX": 1, b"EX": 1000}[ends[0]]
        return b"OK"

    def _incr(self, key: bytes) -> int:
        count = int(self._get(key)) + 1
        self._values[key] = b"%d" % count
        return count

    def _del(self, key: bytes) -> int:
        self._ends.pop(key, None)
        return int(self._values.pop(key, None) is not None)

    def _pexpire(self, key: bytes, length: bytes, condition: bytes = b"") -> int:
        end = self.now + int(length)
        if self._live(key) is None:
            return 0
        before = self._ends.get(key, sys.maxsize)  # without an end it lasts longer than any
        if (condition == b"LT" and end >= before) or (condition == b"GT" and end <= before):
            return 0
        self._ends[key] = end
        return 1

    def _expire(self, key: bytes, seconds: bytes) -> int:
        return self._pexpire(key, b"%d" % (int(seconds) * 1000))

    def _pttl(self, key: bytes) -> int:
        if self._live(key) is None:
            return -2
        return self._ends[key] - self.now if key in self._ends else -1

    def _zadd(self, key: bytes, *pairs: bytes) -> int:
        zset = self._zset(key)
        zset.update(zip(pairs[1::2], map(int, pairs[::2]), strict=True))
        self._values[key] = zset
        return len(pairs) // 2

    def _zrem(self, key: bytes, *members: bytes) -> int:
        zset = self._zset(key)
        found = [member for member in members if zset.pop(member, None) is not None]
        if key in self._values and not zset:
            self._del(key)
        return len(found)

    def _zscore(self, key: bytes, member: bytes) -> Any:
        return self._zset(key).get(member)

    def _zmscore(self, key: bytes, *members: bytes) -> list[Any]:
        return [self._zset(key).get(member) for member in members]

    def _zrange(self, key: bytes, first: bytes, last: bytes, *scores: bytes) -> list[Any]:
        end = None if int(last) == -1 else int(last) + 1
        found = self._ordered(key)[int(first) : end]
        return [part for pair in found for part in pair] if scores else [member for member, _ in found]

    def _zrangebyscore(self, key: bytes, least: bytes, most: bytes, *limit: bytes) -> list[bytes]:
        found = [member for member, score in self._ordered(key) if _within(int(score), least, most)]
        return found[int(limit[1]) : int(limit[1]) + int(limit[2])] if limit else found

    def _zremrangebyscore(self, key: bytes, least: bytes, most: bytes) -> int:
        return self._zrem(key, *self._zrangebyscore(key, least, most))

    def _zremrangebyrank(self, key: bytes, first: bytes, last: bytes) -> int:
        return self._zrem(key, *self._zrange(key, first, last))

    def _ordered(self, key: bytes) -> list[tuple[bytes, bytes]]:
        pairs = sorted(self._zset(key).items(), key=lambda pair: (pair[1], pair[0]))
        return [(member, b"%d" % score) for member, score in pairs]

    def _hmget(self, key: bytes, *fields: bytes) -> list[None]:
        """Of pools, which no run of these histories is in."""
        return [None] * len(fields)


class SimulatedStore(Store):
    """The product's store over it: every round trip is one moment."""

    def __init__(self, redis: SimulatedRedis) -> None:
        super().__init__("redis://simulated.invalid/0", "n")
        self._simulated = redis

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return self.run_each(script, [(keys, arguments)])[0]

    def run_each(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        return [self._simulated.evaluate(script.text, keys, arguments) for keys, arguments in calls]

    def batch(self, fill: Callable[[Any], object], *, atomic: bool = False) -> list[Any]:
        pipe = _Pipe(self._simulated)
        fill(pipe)
        return pipe.answers

    def now_ms(self) -> int:
        return self._simulated.now


class _Pipe:
    """redis-py's pipeline, as far as the product uses it here."""

    def __init__(self, redis: SimulatedRedis) -> None:
        self._redis = redis
        self.answers: list[Any] = []

    def execute_command(self, *parts: Any) -> None:
        found = self._redis.call(*parts)
        self.answers.append(_none(found))

    def get(self, key: str) -> None:
        self.execute_command("GET", key)

    def pttl(self, key: str) -> None:
        self.execute_command("PTTL", key)

    def set(self, key: str, value: Any, ex: int | None = None) -> None:
        self.execute_command("SET", key, value, *(() if ex is None else ("EX", ex)))

    def incr(self, key: str) -> None:
        self.execute_command("INCR", key)

    def pexpire(self, key: str, millis: int) -> None:
        self.execute_command("PEXPIRE", key, millis)

    def delete(self, key: str) -> None:
        self.execute_command("DEL", key)

    def expire(self, key: str, seconds: int) -> None:
        self.execute_command("EXPIRE", key, seconds)

    def zadd(self, key: str, scores: dict[Any, int]) -> None:
        if scores:
            self.execute_command("ZADD", key, *(part for pair in scores.items() for part in pair[::-1]))

    def zrem(self, key: str, *members: bytes) -> None:
        self.execute_command("ZREM", key, *members)

    def zscore(self, key: str, member: bytes) -> None:
        self.execute_command("ZSCORE", key, member)

    def zmscore(self, key: str, members: Sequence[bytes]) -> None:
        self.execute_command("ZMSCORE", key, *members)

    def hmget(self, key: str, fields: Sequence[bytes]) -> None:
        self.execute_command("HMGET", key, *fields)

    def zrange(self, key: str, first: int, last: int, *, withscores: bool) -> None:
        assert withscores
        self.execute_command("ZRANGE", key, first, last, "WITHSCORES")
        flat = self.answers.pop()
        self.answers.append([(flat[at], int(flat[at + 1])) for at in range(0, len(flat), 2)])


def _within(score: int, least: bytes, most: bytes) -> bool:
    above = least == b"-inf" or score >= int(least)
    return above and (score < int(most[1:]) if most.startswith(b"(") else score <= int(most))


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    return b"%d" % item if isinstance(item, int | float) else str(item).encode()


def _none(found: Any) -> Any:
    if isinstance(found, list):
        return [_none(item) for item in found]
    return None if found is False else found


def _answer(found: Any) -> Any:
    """As Redis hands it over: numbers are whole, tables are lists."""
    if lua51.lua_type(found) == "table":
        return [_answer(item) for item in found.values()]
    return int(found) if isinstance(found, float) else found
