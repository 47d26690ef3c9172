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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from executions.claims import sent_again
from executions.entries import MEMBER_BYTES, Entry, Popped, spec_head
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
_SENT = Script("executions.lua", "sent.lua")
_LATE = Script("executions.lua", "late.lua")


@dataclass(frozen=True, slots=True)
class Due:
    """What one pop of one shard gave. ``next_due`` is the due time of the next run in the window, if any."""

    shard: int
    now: datetime
    next_due: datetime | None
    runs: list[Popped]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the window has an attempt: popped and unconfirmed, or sent at; ``in_line``: it waits its turn."""

    in_flight: bool
    sent_at: datetime | None
    in_line: bool = False


class Window:
    """``grace``: what is overdue by more than this is a misfire, and given out to nobody."""

    def __init__(self, store: Store, grace: timedelta = NO_LIMIT) -> None:
        self.store = store
        self._grace_ms = grace // timedelta(milliseconds=1)

    def add(self, entries: Iterable[Entry], specs: Mapping[UUID, bytes]) -> None:
        """Put waiting runs in; what is in already stays once. ``specs``: the JSON of each entry's RunSpec."""
        placed: dict[int, dict[bytes, int]] = defaultdict(dict)
        heads: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        for entry in entries:
            shard = entry.shard
            placed[shard][entry.member] = entry.score
            if entry.spec_id in specs:
                heads[shard][spec_head(entry.spec_id)] = specs[entry.spec_id]
        self.put(placed, heads)

    def put(
        self, members: Mapping[int, Mapping[bytes, int]], specs: Mapping[int, Mapping[bytes, bytes]]
    ) -> None:
        """``add`` of what is packed already: by shard, due times in ms by member, and JSON by head.

        One round trip. Should it break off, all of it may be put in again: RunSpecs come first, then the
        buckets, then their index, where what pops looks first.
        """

        def fill(pipe: Any) -> None:
            for shard, bodies in specs.items():
                for head, body in bodies.items():
                    pipe.set(self._spec(shard, head), body, ex=SPEC_TTL_S)
            for shard, scores in members.items():
                self._fill(shard, scores, pipe)

        if members or specs:
            self.store.batch(fill)

    def _fill(self, shard: int, scores: Mapping[bytes, int], pipe: Any) -> None:
        buckets: dict[int, dict[bytes, int]] = defaultdict(dict)
        for member, score in scores.items():
            buckets[score // MINUTE_MS][member] = score
        for minute, found in buckets.items():
            pipe.zadd(self._bucket(shard, minute), found)
            pipe.expire(self._bucket(shard, minute), BUCKET_TTL_S)
        pipe.zadd(self.store.key(shard, "buckets"), {str(minute): minute for minute in buckets})

    def put_back(self, runs: Iterable[Popped], due: datetime) -> None:
        """Put runs in again, due then, that came out of it; their RunSpecs are here, or asked for."""
        score = to_millis(due)

        def fill(pipe: Any) -> None:
            for run in runs:
                shard, minute = shard_in(run.execution_id), score // MINUTE_MS
                pipe.zadd(self._bucket(shard, minute), {run.member: score})
                pipe.expire(self._bucket(shard, minute), BUCKET_TTL_S)
                pipe.zadd(self.store.key(shard, "buckets"), {str(minute): minute})

        self.store.batch(fill)

    def pop(self, shards: Sequence[int], lease: timedelta, limit: int) -> list[Due]:
        """Pop what is due in each of ``shards`` and lease it to the caller, at most ``limit`` a shard.

        What had a lease before that ended may have been sent then, and is noted as sent again.
        """
        lease_ms = lease // timedelta(milliseconds=1)
        calls = [
            (
                [self.store.key(shard, "buckets"), self.store.key(shard, "flight")],
                [self.store.key(shard, "b") + ":", lease_ms, limit, self._grace_ms],
            )
            for shard in shards
        ]
        answers = self.store.run_each(_POP, calls) if calls else []
        found = [(_due(shard, answer), answer[2]) for shard, answer in zip(shards, answers, strict=True)]
        sent_again(self.store, [run.execution_id for due, again in found for run in due.runs[:again]])
        return [due for due, _ in found]

    def late(self, shards: Sequence[int], by: timedelta) -> list[int]:
        """Those of ``shards`` of which a run has been due for as long as ``by`` and waits in its bucket."""
        by_ms = by // timedelta(milliseconds=1)
        calls = [
            ([self.store.key(shard, "buckets")], [self.store.key(shard, "b") + ":", by_ms])
            for shard in shards
        ]
        answers = self.store.run_each(_LATE, calls) if calls else []
        return [shard for shard, late in zip(shards, answers, strict=True) if late]

    def specs(self, wanted: Mapping[int, Collection[bytes]]) -> dict[bytes, bytes]:
        """The JSON of the RunSpecs with these heads, by shard; what Redis no longer has is left out."""
        asked = {shard: list(heads) for shard, heads in wanted.items() if heads}
        if not asked:
            return {}

        def fill(pipe: Any) -> None:
            for shard, heads in asked.items():
                # Not pipe.mget(): a cluster's pipeline refuses it, although these lie in one slot.
                pipe.execute_command("MGET", *(self._spec(shard, head) for head in heads))

        heads = [head for group in asked.values() for head in group]
        bodies = [body for group in self.store.batch(fill) for body in group]
        return {head: body for head, body in zip(heads, bodies, strict=True) if body is not None}

    def confirm(self, runs: Iterable[Popped], now: datetime, keep: timedelta) -> None:
        """The broker has these: no longer in flight, but noted as sent for ``keep``. One round trip."""
        by_shard: dict[int, list[bytes]] = defaultdict(list)
        for run in runs:
            by_shard[run.shard].append(run.member)
        now_ms = to_millis(now)
        forget = now_ms - keep // timedelta(milliseconds=1)
        calls = [
            (
                [self.store.key(shard, "flight"), self.store.key(shard, "sent")],
                [now_ms, forget, MEMBER_BYTES, b"".join(members)],
            )
            for shard, members in by_shard.items()
        ]
        if calls:
            self.store.run_each(_SENT, calls)

    def remove(self, entries: Iterable[Entry]) -> None:
        """Take waiting runs out again, from their buckets and from in flight, whatever their flags."""

        def fill(pipe: Any) -> None:
            for entry in entries:
                pipe.zrem(self._bucket(entry.shard, entry.score // MINUTE_MS), *entry.variants)
                pipe.zrem(self.store.key(entry.shard, "flight"), *entry.variants)

        self.store.batch(fill)

    def forbid(self, *execution_ids: UUID) -> None:
        """Leave tombstones: whoever claims these must not start them, whoever runs them must stop them."""
        names = [self.store.key(shard_in(run), "stop", run.hex) for run in execution_ids]
        self.store.batch(lambda pipe: [pipe.set(name, b"1", ex=TOMBSTONE_TTL_S) for name in names])

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
    now, next_due, _, members = answer
    return Due(
        shard,
        from_millis(int(now)),
        None if int(next_due) < 0 else from_millis(int(next_due)),
        [Popped(members[start : start + MEMBER_BYTES]) for start in range(0, len(members), MEMBER_BYTES)],
    )
