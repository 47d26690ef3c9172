"""What the window holds of a waiting run: 28 bytes (pure).

16 bytes the execution's id, 8 bytes the head of its RunSpec's id, 1 byte the attempt (at most
100 retries and 3 losses after the first), 2 bytes the generation (its low bits), 1 byte flags.
Up to 28 bytes cost Redis the same allocation as the id alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag
from uuid import UUID

from executions.ids import shard_in
from scheduler_project.kernel.clock import to_micros

_LAYOUT = struct.Struct(">16s8sBHB")
MEMBER_BYTES = _LAYOUT.size
GENERATIONS = 1 << 16


class Flag(IntFlag):
    NONE = 0
    REATTACH = 1  # the attempt was started before: look for its container, do not start another
    RECHECK = 2  # a second delivery of a run that somebody held the first time
    PASSED_ON = 4  # a worker was too small for it, and has said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``generation``: which of the ways that this run was sent (executions/redirection.py)."""

    execution_id: UUID
    spec_id: UUID
    attempt: int
    due: datetime
    generation: int = 0
    flags: Flag = Flag.NONE

    @property
    def shard(self) -> int:
        return shard_in(self.execution_id)

    @property
    def member(self) -> bytes:
        return self._member(self.flags)

    @property
    def variants(self) -> list[bytes]:
        """Every member that this attempt of this generation may have."""
        return [self._member(Flag(flags)) for flags in range(sum(Flag) + 1)]

    def _member(self, flags: Flag) -> bytes:
        head = spec_head(self.spec_id)
        generation = self.generation % GENERATIONS
        return _LAYOUT.pack(self.execution_id.bytes, head, self.attempt, generation, flags)

    @property
    def sent_member(self) -> bytes:
        return sent_member(self.execution_id, self.attempt, self.generation)

    @property
    def score(self) -> int:
        """The due time in whole milliseconds, rounded up: no run starts before it is due."""
        return -(-to_micros(self.due) // 1000)


@dataclass(frozen=True, slots=True)
class Popped:
    """A member as it comes back out of the window; its parts are read when they are asked for."""

    member: bytes

    @property
    def execution_id(self) -> UUID:
        return UUID(bytes=self.member[:16])

    @property
    def text_id(self) -> str:
        """The execution's id as ``str`` of a UUID gives it, for a tenth of the time."""
        text = self.member[:16].hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    @property
    def shard(self) -> int:
        return int.from_bytes(self.member[6:8], "big") & 0xFFF

    @property
    def spec_head(self) -> bytes:
        return self.member[16:24]

    @property
    def attempt(self) -> int:
        return self.member[24]

    @property
    def generation(self) -> int:
        return int.from_bytes(self.member[25:27], "big")

    @property
    def flags(self) -> int:
        """Of ``Flag``; as a number, since nobody here asks for one of them."""
        return self.member[27]

    @property
    def sent_member(self) -> bytes:
        return self.member[:16] + self.member[24:27]


def spec_head(spec_id: UUID) -> bytes:
    """The 64 leading bits of a RunSpec's id: enough to tell apart all that are in use at a time."""
    return spec_id.bytes[:8]


def sent_member(execution_id: UUID, attempt: int, generation: int) -> bytes:
    return execution_id.bytes + struct.pack(">BH", attempt, generation % GENERATIONS)
