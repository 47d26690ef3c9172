"""Pools: at most so many runs at once of a job, of a team and of a named pool.

A place in a pool is a lease in Redis that the run's worker renews with its claim. The worker asks for a
place in each of the run's pools once it has claimed the attempt. Where one is full it gives the claim up
and the run waits in the pool's line, ordered by priority and planned time, in nobody's hands: no slot,
no message. Whoever leaves a place calls the next, which holds its place while it is on its way:

    enter ─┬─ a place in all ──▶ runs ── leave ──▶ calls the next of each line
           └─ one is full ─────▶ line ── called ─▶ window ─▶ beat ─▶ queue ─▶ worker ─▶ enter

The beat calls too, twice a second: for places whose lease has ended, and for limits that were raised.
The limits travel through Redis (``limits``), since workers have no database. Where they are unknown (a
Redis that has lost its data), what is limited by its own definition waits until the beat has written
them again, and by then the workers have made the places of what runs anew. docs/adr/0015 says why so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from executions.entries import Popped
from executions.priorities import Priority
from executions.runspecs import Spec
from executions.store import Script, Store
from executions.window import Window

_POOLS = Script("executions.lua", "pools.lua")
_MS = timedelta(milliseconds=1)
_RANKS = 1 << 42  # more than any time in milliseconds, and with a few classes exact in a double
_WHOLE = ""
LEASES = 3
"""A place is kept for so many leases of a claim: its container goes on while nobody holds the claim."""
ON_ITS_WAY = timedelta(seconds=30)
"""So long a place is kept for a run that was called; it asks anew where it comes later."""
POOL_FULL = "pool_full"
NO_ROOM = "no_room"


def job_pool(job_id: object) -> str:
    return f"job:{job_id}"


def team_pool(owner_id: int) -> str:
    return f"team:{owner_id}"


def named_pool(name: str) -> str:
    return f"pool:{name}"


def pools_of(spec: Spec) -> tuple[str, ...]:
    """Every pool that may limit a run, whether it has a limit now or not; the narrowest first."""
    named = (named_pool(spec.pool),) if spec.pool else ()
    return (job_pool(spec.job_id), *named, team_pool(spec.owner_id))


def rank(priority: Priority, due_ms: int) -> int:
    """The place in a line: first by priority, then by planned time."""
    return priority.place * _RANKS + due_ms


@dataclass(frozen=True, slots=True)
class Waiter:
    """A run that asks for places. ``run``: as it came out of the window; ``must_know``: it waits where limits
    are unknown."""

    run: Popped
    pools: tuple[str, ...]
    rank: int
    must_know: bool = False


@dataclass(frozen=True, slots=True)
class Full:
    """``pool`` has ``limit`` runs; None: how many it may have is not known at this moment."""

    pool: str
    limit: int | None


@dataclass(frozen=True, slots=True)
class Usage:
    """``active``: places taken, also by runs on their way; ``exceeded``: how often there were more."""

    active: int
    waiting: int
    exceeded: int


def describe_full(full: Full, spec: Spec) -> str:
    """For what a run waits."""
    if full.limit is None:
        return "the limits on runs at once to be known again"
    most = f"{full.limit} run{'' if full.limit == 1 else 's'} at once"
    return f"a place: {pool_owner(full.pool, spec)} may have {most}"


def pool_owner(pool: str, spec: Spec) -> str:
    """Whose places they are, said to those of the run ``spec``."""
    kind, _, name = pool.partition(":")
    return {"job": "its job", "team": f"the team {spec.owner!r}"}.get(kind, f"the pool {name!r}")


class Pools:
    """``lease``: how long a place lasts without being renewed."""

    def __init__(self, store: Store, lease: timedelta) -> None:
        self._store = store
        self._lease_ms = lease // _MS

    def enter(self, waiter: Waiter, *, force: bool = False) -> tuple[Full | None, list[Popped]]:
        """Take a place in each pool, or wait in line for the one that is full; and who was called meanwhile.

        ``force``: it runs already, whatever the limits.
        """
        run = waiter.run
        arguments = [run.member, waiter.rank, self._lease_ms, int(force), int(waiter.must_know)]
        answer = self._run("enter", run.execution_id.bytes, *arguments, *waiter.pools)
        full, limit, *called = answer
        waits = Full(full.decode(), None if limit < 0 else limit) if full else None
        return waits, _called(called)

    def renew(self, runs: Mapping[UUID, Sequence[str]]) -> None:
        """Keep the places of these runs, in one round trip; made anew where they are lost."""
        parts: list[Any] = []
        for run, pools in runs.items():
            parts += [run.bytes, len(pools), *pools]
        if parts:
            self._run("renew", self._lease_ms, *parts)

    def leave(self, run: UUID, pools: Sequence[str] = ()) -> list[Popped]:
        """It has ended, or waits no more; who is called in its place."""
        return _called(self._run("leave", run.bytes, *pools))

    def confirm(self, runs: Sequence[Popped]) -> None:
        """Those that were called are in the window."""
        if runs:
            self._run("confirm", ON_ITS_WAY // _MS, *[run.execution_id.bytes for run in runs])

    def call(self) -> list[Popped]:
        """Who may come in by now, of all lines."""
        return _called(self._run("call"))

    def waiting(self, runs: Sequence[UUID]) -> list[bool]:
        """Which of these wait in a line, or were called from one."""
        if not runs:
            return []
        (found,) = self._store.batch(
            lambda pipe: pipe.hmget(self._key("waiters"), [run.bytes for run in runs])
        )
        return [item is not None for item in found]

    def line_of(self, run: UUID) -> tuple[Full, int] | None:
        """For which pool a run waits, and how many go before it; None where it is in no line."""
        pool, ahead, limit = self._run("line", run.bytes)
        return (Full(pool.decode(), None if limit < 0 else limit), ahead) if pool else None

    def holders(self, pool: str, most: int) -> list[UUID]:
        """Runs that have a place in it now, up to ``most``, those whose lease lasts longest first."""
        now_ms = self._store.now_ms()
        (found,) = self._store.batch(
            lambda pipe: pipe.zrevrangebyscore(self._key(f"in:{pool}"), "+inf", f"({now_ms}", 0, most)
        )
        return [UUID(bytes=run) for run in found]

    def knows_limits(self) -> bool:
        (found,) = self._store.batch(lambda pipe: pipe.hexists(self._key("limits"), _WHOLE))
        return bool(found)

    def limits(self) -> dict[str, int] | None:
        """What is written; None where Redis has lost it, or never had it."""
        (found,) = self._store.batch(lambda pipe: pipe.hgetall(self._key("limits")))
        if _WHOLE.encode() not in found:
            return None
        return {name.decode(): int(limit) for name, limit in found.items() if name}

    def write_limits(self, limits: Mapping[str, int]) -> None:
        """All that there are."""

        def fill(pipe: Any) -> None:
            pipe.delete(self._key("limits"))
            pipe.hset(self._key("limits"), mapping={**limits, _WHOLE: 1})

        self._store.batch(fill, atomic=True)

    def set_limit(self, pool: str, limit: int | None) -> None:
        """Of one pool, at once. None: no limit any more."""
        name = self._key("limits")
        self._store.batch(
            lambda pipe: pipe.hdel(name, pool) if limit is None else pipe.hset(name, pool, limit)
        )

    def usage(self, pools: Sequence[str]) -> list[Usage]:
        now_ms = self._store.now_ms()

        def fill(pipe: Any) -> None:
            for pool in pools:
                pipe.zcount(self._key(f"in:{pool}"), f"({now_ms}", "+inf")
                pipe.zcard(self._key(f"line:{pool}"))
                pipe.hget(self._key("exceeded"), pool)

        found = self._store.batch(fill) if pools else []
        return [
            Usage(active, waiting, int(exceeded or 0))
            for active, waiting, exceeded in zip(found[::3], found[1::3], found[2::3], strict=True)
        ]

    def _run(self, what: str, *arguments: Any) -> Any:
        return self._store.run(_POOLS, [self._key("limits")], [self._key(""), what, *arguments])

    def _key(self, name: str) -> str:
        return self._store.tagged_key("pools", name)


def send_called(pools: Pools, window: Window, called: Sequence[Popped], now: datetime) -> None:
    """Those that were called go into the window, due now. StoreUnavailable: they are called again."""
    if called:
        window.put_back(called, now)
        pools.confirm(called)


def leave_lines(window: Window, runs: Collection[UUID], now: datetime) -> None:
    """These wait for no pool any more: they were cancelled, paused, moved or changed."""
    pools = Pools(window.store, timedelta(0))
    ids = list(runs)
    for run, waits in zip(ids, pools.waiting(ids), strict=True):
        if waits:
            send_called(pools, window, pools.leave(run), now)


def _called(answer: Sequence[bytes]) -> list[Popped]:
    return [Popped(member) for member in answer[1::2]]
