"""Claims: who runs an attempt, as a lease in Redis that its worker keeps alive.

The claim's key is the execution's, its value names attempt, status and worker, so that
the attempt fences: once attempt 2 is claimed, nobody can claim or renew attempt 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from executions.engines import SITE_KEPT, site_key
from executions.entries import GENERATIONS, sent_member
from executions.ids import shard_in
from executions.store import Script, Store
from scheduler_project.kernel.clock import EPOCH, to_micros

_CLAIM = Script("executions.lua", "claim.lua")
_RENEW = Script("executions.lua", "renew.lua")
_RELEASE = Script("executions.lua", "release.lua")
_FENCE = Script("executions.lua", "fence.lua")
_FORBID = Script("executions.lua", "forbid.lua")
_AGAIN = Script("executions.lua", "again.lua")
_HEARD = Script("executions.lua", "heard.lua")
FENCE_TTL = TOMBSTONE_TTL = timedelta(days=7)
_MS = timedelta(milliseconds=1)
_SITE_KEPT_MS = SITE_KEPT // _MS

SENT_AGAIN_KEPT = timedelta(days=1)
"""How long the outcome of a run keeps out what was sent of it before, and waits in a queue that is long."""

OUTCOME_KEPT = timedelta(days=7)
"""How long an outcome lies with its claim while no recorder has heard of it, and keeps duplicates out."""

MOST_TAKE_UPS = 3
TAKE_UPS_KEPT = timedelta(minutes=10)
"""A run whose worker has gone away, and so often another, each time within this, is what ends them."""

Attempt = tuple[UUID, int]


class Claimed(StrEnum):
    WON = "won"
    HELD = "held"  # by somebody else, whose lease has not ended
    DONE = "done"
    STALE = "stale"  # a later attempt or generation exists
    STOPPED = "stopped"  # cancelled before it started


class Renewal(StrEnum):
    HELD = "held"
    STOPPED = "stopped"
    FENCED = "fenced"


class Claims:
    """The claims of one worker; ``token`` is its identity, unique per process.

    ``engine``: the identity of its container engine, empty as long as it is not known.
    """

    def __init__(self, store: Store, token: str, lease: timedelta) -> None:
        self.engine = ""
        self._store = store
        self._token = token
        self._lease_ms = lease // _MS

    def claim(
        self,
        execution_id: UUID,
        attempt: int,
        *,
        generation: int = 0,
        reattach: bool = False,
        begun_at: datetime = EPOCH,
    ) -> Claimed:
        """Claim an attempt as it was sent in a ``generation``, and leave behind where and since when it is.

        ``reattach``: one that has begun already, and that a tombstone asks to stop.
        """
        shard = shard_in(execution_id)
        keys = [
            self._key(execution_id),
            self._tombstone(execution_id),
            fence_key(self._store, execution_id),
            self._store.key(shard, "sent"),
            site_key(self._store, execution_id),
            heard_key(self._store, execution_id),
        ]
        sent = sent_member(execution_id, attempt, generation)
        arguments = [
            *(attempt, self._token, self._lease_ms, int(reattach), generation % GENERATIONS, sent),
            *(self.engine, to_micros(begun_at), _SITE_KEPT_MS),
        ]
        return Claimed(self._store.run(_CLAIM, keys, arguments).decode())

    def renew(self, attempts: Sequence[Attempt]) -> list[Renewal]:
        """Renew each, in one round trip."""
        calls = [
            (
                [self._key(run), self._tombstone(run), site_key(self._store, run)],
                [attempt, self._token, self._lease_ms, self.engine, _SITE_KEPT_MS],
            )
            for run, attempt in attempts
        ]
        return [Renewal(answer.decode()) for answer in self._store.run_each(_RENEW, calls)] if calls else []

    def finish(self, execution_id: UUID, attempt: int, outcome: bytes) -> None:
        """End the lease; until ``outcome`` is heard duplicates stay out, and the sweep can say it again."""
        self._release(execution_id, attempt, [OUTCOME_KEPT // _MS, outcome, 1])

    def give_up(self, execution_id: UUID, attempt: int, *, begun: bool = True) -> None:
        """End the lease: another worker may claim at once. ``begun``: something of it may run."""
        self._release(execution_id, attempt, [0, b"", int(begun)])

    def note_take_up(self, execution_id: UUID) -> int:
        """A run is taken up whose worker is gone; how often that was so lately, this time included."""
        key = _take_ups_key(self._store, execution_id)

        def count(pipe: Any) -> None:
            pipe.incr(key)
            pipe.pexpire(key, TAKE_UPS_KEPT // _MS)

        return int(self._store.batch(count, atomic=True)[0])

    def forget_take_ups(self, execution_id: UUID) -> None:
        """Its worker has ended in order, and not because of it."""
        self._store.batch(lambda pipe: pipe.delete(_take_ups_key(self._store, execution_id)))

    def _release(self, execution_id: UUID, attempt: int, how: Sequence[Any]) -> None:
        keys = [self._key(execution_id), site_key(self._store, execution_id)]
        self._store.run(_RELEASE, keys, [attempt, self._token, *how])

    def _key(self, execution_id: UUID) -> str:
        return claim_key(self._store, execution_id)

    def _tombstone(self, execution_id: UUID) -> str:
        return tombstone_key(self._store, execution_id)


def claim_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "claim", execution_id.hex)


def tombstone_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "stop", execution_id.hex)


def fence_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "fence", execution_id.hex)


def fence(store: Store, runs: Sequence[tuple[UUID, int, int]]) -> list[bool]:
    """Let each (execution, attempt, generation) start in no earlier generation; False: it has begun."""
    calls = [
        (
            [fence_key(store, run), claim_key(store, run), site_key(store, run)],
            [generation, attempt, FENCE_TTL // _MS],
        )
        for run, attempt, generation in runs
    ]
    return [bool(answer) for answer in store.run_each(_FENCE, calls)] if calls else []


def forbid_start(store: Store, execution_id: UUID, attempt: int, *, site_counts: bool = True) -> bool:
    """Leave a tombstone; whether nobody has begun the attempt, so that nobody will.

    ``site_counts``: one whose worker is gone, or has handed it over, has begun too.
    """
    keys = [tombstone_key(store, execution_id), claim_key(store, execution_id), site_key(store, execution_id)]
    return bool(store.run(_FORBID, keys, [attempt, TOMBSTONE_TTL // _MS, int(site_counts)]))


def _take_ups_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "ups", execution_id.hex)


def heard_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "heard", execution_id.hex)


def heard(store: Store, attempts: Collection[Attempt], keep: timedelta) -> None:
    """Their outcomes are recorded: duplicates are kept out for ``keep`` more, and their claims go.

    For ``SENT_AGAIN_KEPT`` where they were sent again. Also where a worker died between the publishing of
    an outcome and the end of its claim.
    """
    how = [keep // _MS, SENT_AGAIN_KEPT // _MS]
    calls = [(_kept_keys(store, run), [attempt, *how]) for run, attempt in attempts]
    if calls:
        store.run_each(_HEARD, calls)


def sent_again(store: Store, runs: Collection[UUID]) -> None:
    """Before runs are sent of which a message may be in a queue yet: the second finds that it is done."""
    if runs:
        store.run_each(_AGAIN, [(_kept_keys(store, run), [SENT_AGAIN_KEPT // _MS]) for run in runs])


def _kept_keys(store: Store, run: UUID) -> list[str]:
    return [claim_key(store, run), heard_key(store, run), store.key(shard_in(run), "again", run.hex)]


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A claim as others see it.

    ``outcome``: the message that said how the attempt ended, if it has. ``ends_in``: when the claim
    ends unless it is renewed meanwhile.
    """

    attempt: int
    outcome: bytes = b""
    ends_in: timedelta = field(default=timedelta(0), compare=False)


def known_claims(store: Store, runs: Sequence[UUID]) -> list[KnownClaim | None]:
    """Who holds or has finished each run; None: nobody (its worker is gone)."""
    if not runs:
        return []

    def ask(pipe: Any) -> None:
        for run in runs:
            pipe.get(claim_key(store, run))
            pipe.pttl(claim_key(store, run))

    answers = store.batch(ask)
    return [
        None if value is None else _known(value, ends_in)
        for value, ends_in in zip(answers[::2], answers[1::2], strict=True)
    ]


def _known(value: bytes, ends_in_ms: int) -> KnownClaim:
    attempt, status, rest = value.split(b" ", 2)
    outcome = rest.partition(b" ")[2] if status == b"done" else b""
    return KnownClaim(int(attempt), outcome, max(0, ends_in_ms) * _MS)
