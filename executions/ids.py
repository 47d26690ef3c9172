"""Identities that can be computed (pure).

An execution's id is a UUID of version 7 whose parts all follow from what the run *is*:

    48 bits  due time, milliseconds since 1970          (ids sort by due time)
     4 bits  version 7
    12 bits  shard                                      (can be read off the id)
     2 bits  variant
    62 bits  BLAKE2b over job, due time in microseconds, trigger, idempotency key

so creating the same occurrence twice, by whomever, is one ``INSERT … ON CONFLICT DO NOTHING``,
and a range of ids is a range of due times.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from uuid import UUID

from scheduler_project.kernel.clock import EPOCH, from_millis, to_micros, to_millis
from scheduler_project.kernel.errors import InvalidValue

LATEST = from_millis((1 << 47) - 1)  # year 6429; later ones do not fit Python's and PostgreSQL's needs alike
_RANDOM_BITS = 62


def shard_of(job_id: UUID, shards: int) -> int:
    """The shard of a job, 0 to ``shards`` - 1; the same in every process and on every machine."""
    return int.from_bytes(blake2b(job_id.bytes, digest_size=8).digest(), "big") % shards


def execution_id(job_id: UUID, due: datetime, trigger: str, shard: int, key: str = "") -> UUID:
    """The id of the run of ``job_id`` that is due at ``due`` (aware) for the reason ``trigger``.

    ``key`` tells apart runs that are alike in all else: an idempotency key.
    """
    if not EPOCH <= due <= LATEST:
        raise InvalidValue(f"{due.isoformat()} is not between 1970-01-01 and {LATEST.date().isoformat()}")
    text = b"%b|%d|%b|%b" % (job_id.bytes, to_micros(due), trigger.encode(), key.encode())
    digest = int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> (64 - _RANDOM_BITS)
    value = to_millis(due) << 80 | 0x7 << 76 | (shard & 0xFFF) << 64 | 0b10 << 62 | digest
    return UUID(int=value)


def due_of(identity: UUID) -> datetime:
    """The due time, to the millisecond, that an execution's id carries."""
    return from_millis(identity.int >> 80)


def shard_in(identity: UUID) -> int:
    """The shard that an execution's id carries."""
    return identity.int >> 64 & 0xFFF


def lowest_id(instant: datetime) -> UUID:
    """The least id of any execution due at ``instant`` or later: a bound for ranges and partitions."""
    return UUID(int=max(0, to_millis(instant)) << 80)


def event_id(execution: UUID, attempt: int, kind: str, distinction: str = "") -> UUID:
    """The id of an event: the same statement, made twice, has the same id."""
    text = b"%b|%d|%b|%b" % (execution.bytes, attempt, kind.encode(), distinction.encode())
    return UUID(bytes=blake2b(text, digest_size=16).digest())


def spec_id(canonical: bytes) -> UUID:
    """The id of a RunSpec: the digest of its canonical JSON."""
    return UUID(bytes=blake2b(canonical, digest_size=16).digest())
