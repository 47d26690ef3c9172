"""Claims: who runs an attempt, as a lease in Redis that its worker keeps alive.

The claim's key is the execution's, its value names attempt, status and worker, so that
the attempt fences: once attempt 2 is claimed, nobody can claim or renew attempt 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from executions.entries import GENERATIONS, sent_member
from executions.ids import shard_in
from executions.store import Script, Store

_CLAIM = Script("executions.lua", "claim.lua")
_RENEW = Script("executions.lua", "renew.lua")
_RELEASE = Script("executions.lua", "release.lua")
_FENCE = Script("executions.lua", "fence.lua")
FENCE_TTL = timedelta(days=7)
_MS = timedelta(milliseconds=1)

OUTCOME_KEPT = timedelta(days=7)
"""How long an outcome lies with its claim while no recorder has heard of it, and keeps duplicates out."""

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
    """The claims of one worker; ``token`` is its identity, unique per process."""

    def __init__(self, store: Store, token: str, lease: timedelta) -> None:
        self._store = store
        self._token = token
        self._lease_ms = lease // _MS

    def claim(
        self, execution_id: UUID, attempt: int, *, generation: int = 0, reattach: bool = False
    ) -> Claimed:
        """Claim an attempt as it was sent in a ``generation``.

        ``reattach``: one that has begun already, and that a tombstone asks to stop.
        """
        shard = shard_in(execution_id)
        keys = [
            self._key(execution_id),
            self._tombstone(execution_id),
            fence_key(self._store, execution_id),
            self._store.key(shard, "sent"),
        ]
        sent = sent_member(execution_id, attempt, generation)
        arguments = [attempt, self._token, self._lease_ms, int(reattach), generation % GENERATIONS, sent]
        return Claimed(self._store.run(_CLAIM, keys, arguments).decode())

    def renew(self, attempts: Sequence[Attempt]) -> list[Renewal]:
        """Renew each, in one round trip."""
        calls = [
            ([self._key(run), self._tombstone(run)], [attempt, self._token, self._lease_ms])
            for run, attempt in attempts
        ]
        return [Renewal(answer.decode()) for answer in self._store.run_each(_RENEW, calls)] if calls else []

    def finish(self, execution_id: UUID, attempt: int, outcome: bytes) -> None:
        """End the lease; until ``outcome`` is heard duplicates stay out, and the sweep can say it again."""
        self._release(execution_id, attempt, OUTCOME_KEPT, outcome)

    def give_up(self, execution_id: UUID, attempt: int) -> None:
        """End the lease: another worker may claim at once."""
        self._release(execution_id, attempt, timedelta(0), b"")

    def _release(self, execution_id: UUID, attempt: int, keep: timedelta, outcome: bytes) -> None:
        self._store.run(_RELEASE, [self._key(execution_id)], [attempt, self._token, keep // _MS, outcome])

    def _key(self, execution_id: UUID) -> str:
        return claim_key(self._store, execution_id)

    def _tombstone(self, execution_id: UUID) -> str:
        return self._store.key(shard_in(execution_id), "stop", execution_id.hex)


def claim_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "claim", execution_id.hex)


def fence_key(store: Store, execution_id: UUID) -> str:
    return store.key(shard_in(execution_id), "fence", execution_id.hex)


def fence(store: Store, runs: Sequence[tuple[UUID, int, int]]) -> list[bool]:
    """Let each (execution, attempt, generation) start in no earlier generation; False: it has begun."""
    calls = [
        ([fence_key(store, run), claim_key(store, run)], [generation, attempt, FENCE_TTL // _MS])
        for run, attempt, generation in runs
    ]
    return [bool(answer) for answer in store.run_each(_FENCE, calls)] if calls else []


def heard(store: Store, runs: Collection[UUID], keep: timedelta) -> None:
    """Their outcomes are recorded: their claims keep duplicates out for ``keep`` more, and go."""
    if runs:
        names = [claim_key(store, run) for run in runs]
        store.batch(lambda pipe: [pipe.pexpire(name, keep // _MS, lt=True) for name in names])


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A claim as others see it; ``outcome``: the message that said how the attempt ended, if it has."""

    attempt: int
    outcome: bytes = b""


def known_claims(store: Store, runs: Sequence[UUID]) -> list[KnownClaim | None]:
    """Who holds or has finished each run; None: nobody (its worker is gone)."""
    if not runs:
        return []
    answers = store.batch(lambda pipe: [pipe.get(claim_key(store, run)) for run in runs])
    return [None if answer is None else _known(answer) for answer in answers]


def _known(value: bytes) -> KnownClaim:
    attempt, status, rest = value.split(b" ", 2)
    return KnownClaim(int(attempt), rest.partition(b" ")[2] if status == b"done" else b"")
