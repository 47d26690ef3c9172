"""The window: the waiting runs of the next minutes, in Redis, by time bucket.

Keys of a shard (all with its hash tag):

    b:<minute>   ZSET   a bucket: 28-byte members (executions/entries.py), score: due time in ms
    buckets      ZSET   the minutes that have a bucket
    flight       ZSET   popped and not yet confirmed by the broker, score: end of the lease in ms
    sent         ZSET   confirmed by the broker, score: when, in ms; kept for the enqueue time-out
    loaded       string the loaded-until mark in ms: rows due up to here have been read
    spec:<head>  string a RunSpec's JSON, once for each
    stop:<id>    string a tombstone: this run must not start, or must stop
    fence:<id>   string the generation that this run may start in; see executions/redirection.py

Nothing lives here alone: whatever is lost is loaded again from PostgreSQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from executions.entries import Entry, Popped, spec_head, unpack
from executions.ids import shard_in
from executions.store import Script, Store
from scheduler_project.kernel.clock import from_millis, to_millis

MINUTE_MS = 60_000
SPEC_TTL_S = 3 * 3600
TOMBSTONE_TTL_S = 7 * 86400
BUCKET_TTL_S = 86400
SLACK = timedelta(seconds=10)
NO_LIMIT = timedelta(days=365 * 100)
_POP = Script("executions.lua", "pop.lua")


@dataclass(frozen=True, slots=True)
class Due:
    """What one pop of one shard gave. ``next_due`` is the due time of the next run in the window, if any."""

    shard: int
    now: datetime
    next_due: datetime | None
    runs: list[Popped]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the window has an attempt: popped and unconfirmed, or sent at."""

    in_flight: bool
    sent_at: datetime | None


class Window:
    """``grace``: what is overdue by more than this is a misfire, and given out to nobody."""

    def __init__(self, store: Store, grace: timedelta = NO_LIMIT) -> None:
        self.store = store
        self._grace_ms = grace // timedelta(milliseconds=1)

    def add(self, entries: Iterable[Entry], specs: Mapping[UUID, bytes]) -> None:
        """Put waiting runs in; what is in already stays once. ``specs``: the JSON of each entry's RunSpec."""
        by_shard: dict[int, list[Entry]] = defaultdict(list)
        for entry in entries:
            by_shard[entry.shard].append(entry)
        for shard, group in by_shard.items():
            self.store.batch(partial(self._fill, shard, group, specs), atomic=True)

    def _fill(self, shard: int, entries: Sequence[Entry], specs: Mapping[UUID, bytes], pipe: Any) -> None:
        buckets: dict[int, dict[bytes, float]] = defaultdict(dict)
        for entry in entries:
            buckets[entry.score // MINUTE_MS][entry.member] = entry.score
        for spec_id in {entry.spec_id for entry in entries}:
            if spec_id in specs:
                pipe.set(self._spec(shard, spec_head(spec_id)), specs[spec_id], ex=SPEC_TTL_S)
        for minute, members in buckets.items():
            pipe.zadd(self._bucket(shard, minute), members)
            pipe.expire(self._bucket(shard, minute), BUCKET_TTL_S)
        pipe.zadd(self.store.key(shard, "buckets"), {str(minute): minute for minute in buckets})

    def pop(self, shards: Sequence[int], lease: timedelta, limit: int) -> list[Due]:
        """Pop what is due in each of ``shards`` and lease it to the caller, at most ``limit`` a shard."""
        lease_ms = lease // timedelta(milliseconds=1)
        calls = [
            (
                [self.store.key(shard, "buckets"), self.store.key(shard, "flight")],
                [self.store.key(shard, "b") + ":", lease_ms, limit, self._grace_ms],
            )
            for shard in shards
        ]
        answers = self.store.run_each(_POP, calls) if calls else []
        return [_due(shard, answer) for shard, answer in zip(shards, answers, strict=True)]

    def specs(self, shard: int, heads: Sequence[bytes]) -> dict[bytes, bytes]:
        """The JSON of the RunSpecs with these heads; what Redis no longer has is left out."""
        if not heads:
            return {}
        names = [self._spec(shard, head) for head in heads]
        (found,) = self.store.batch(lambda pipe: pipe.mget(names))
        return {head: body for head, body in zip(heads, found, strict=True) if body is not None}

    def put_specs(self, shard: int, specs: Mapping[UUID, bytes]) -> None:
        def fill(pipe: Any) -> None:
            for spec_id, body in specs.items():
                pipe.set(self._spec(shard, spec_head(spec_id)), body, ex=SPEC_TTL_S)

        self.store.batch(fill)

    def confirm(self, shard: int, runs: Sequence[Popped], now: datetime, keep: timedelta) -> None:
        """The broker has these: no longer in flight, but noted as sent for ``keep``."""
        if not runs:
            return
        now_ms = to_millis(now)

        def fill(pipe: Any) -> None:
            pipe.zrem(self.store.key(shard, "flight"), *[run.member for run in runs])
            pipe.zadd(self.store.key(shard, "sent"), {run.sent_member: now_ms for run in runs})
            pipe.zremrangebyscore(
                self.store.key(shard, "sent"), "-inf", now_ms - keep // timedelta(milliseconds=1)
            )

        self.store.batch(fill, atomic=True)

    def remove(self, entries: Iterable[Entry]) -> None:
        """Take waiting runs out again, from their buckets and from in flight, whatever their flags."""

        def fill(pipe: Any) -> None:
            for entry in entries:
                pipe.zrem(self._bucket(entry.shard, entry.score // MINUTE_MS), *entry.variants)
                pipe.zrem(self.store.key(entry.shard, "flight"), *entry.variants)

        self.store.batch(fill)

    def forbid(self, execution_id: UUID) -> None:
        """Leave a tombstone: whoever claims this run must not start it, whoever runs it must stop it."""
        name = self.store.key(shard_in(execution_id), "stop", execution_id.hex)
        self.store.batch(lambda pipe: pipe.set(name, b"1", ex=TOMBSTONE_TTL_S))

    def locate(self, entries: Sequence[Entry]) -> list[Whereabouts]:
        """Where each is on its way to the broker, whatever its flags."""

        def fill(pipe: Any) -> None:
            for entry in entries:
                pipe.zmscore(self.store.key(entry.shard, "flight"), entry.variants)
                pipe.zscore(self.store.key(entry.shard, "sent"), entry.sent_member)

        answers = self.store.batch(fill) if entries else []
        return [
            Whereabouts(
                in_flight=any(score is not None for score in flight),
                sent_at=None if sent is None else from_millis(int(sent)),
            )
            for flight, sent in zip(answers[::2], answers[1::2], strict=True)
        ]

    def loaded_until(self, shards: Sequence[int]) -> dict[int, datetime | None]:
        """The loaded-until mark of each shard; None where there is none (a Redis that has lost its data)."""
        marks = self.store.batch(lambda pipe: [pipe.get(self.store.key(shard, "loaded")) for shard in shards])
        return {
            shard: None if mark is None else from_millis(int(mark))
            for shard, mark in zip(shards, marks, strict=True)
        }

    def mark_loaded(self, shards: Sequence[int], until: datetime) -> None:
        mark = to_millis(until)
        self.store.batch(lambda pipe: [pipe.set(self.store.key(shard, "loaded"), mark) for shard in shards])

    def _bucket(self, shard: int, minute: int) -> str:
        return self.store.key(shard, "b", str(minute))

    def _spec(self, shard: int, head: bytes) -> str:
        return self.store.key(shard, "spec", head.hex())


def _due(shard: int, answer: Sequence[Any]) -> Due:
    now, next_due, *members = answer
    return Due(
        shard,
        from_millis(int(now)),
        None if int(next_due) < 0 else from_millis(int(next_due)),
        [unpack(member) for member in members],
    )
