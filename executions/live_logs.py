"""The output of runs that go on, in Redis: what web shows of a log that lies on another machine.

    …:log:<execution>:<attempt>            how many bytes of output there are
    …:log:<execution>:<attempt>:<n>        block n: bytes [n · BLOCK, (n + 1) · BLOCK)
    …:log:<execution>:<attempt>:times      when they came (containers/logs/stamps.py)
    …:log:<execution>:<attempt>:notes      what Punctual says before the run begins

Kept are the first block and the newest ones, so that a run takes a bounded room however much it says; the
whole log is on the worker's disk, and in the archive when the attempt has ended. As in the files, a byte's
place follows from its position, so two workers that ship one log for a moment agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from containers.logs.output import Output, gap_text, shown_stamps
from containers.logs.stamps import RECORD_BYTES, Stamp, packed, unpacked
from containers.logs.tracks import Track
from executions.ids import shard_in
from executions.store import Script, Store
from scheduler_project.kernel.errors import NotFound

BLOCK = 32 * 1024
MOST_TIMES = 8192 * RECORD_BYTES
KEPT = timedelta(hours=1)  # after what was shipped last
LATER = "can be seen when this attempt has ended"
_SHIP = Script("executions.lua", "ship.lua")
_KEPT_MS = KEPT // timedelta(milliseconds=1)


class LiveLogs:
    """``most_bytes`` of each attempt's output are kept, at least BLOCK. StoreUnavailable: Redis is away."""

    def __init__(self, store: Store, most_bytes: int) -> None:
        self._store = store
        self._blocks = max(1, -(-most_bytes // BLOCK))

    def next_part(self, shipped: int, end: int) -> tuple[int, int]:
        """What is to be shipped next of an output of ``end`` bytes: [begin, end), the same: nothing.

        The first block, and of the rest what is kept; what came too fast for that is passed over.
        """
        if shipped < BLOCK:
            return shipped, min(end, BLOCK)
        return max(shipped, min(self._numbers(end)[1:], default=0) * BLOCK), end

    def ship(self, attempt: tuple[UUID, int], begin: int, data: bytes, stamps: Sequence[Stamp]) -> None:
        """``data``: the output from ``begin`` on, as ``next_part`` says."""
        end = begin + len(data)
        first, last = begin // BLOCK, max(begin, end - 1) // BLOCK
        keys, arguments = [self._key(attempt), self._key(attempt, "times")], list[int | bytes]()
        for number in range(first, last + 1):
            start = max(begin, number * BLOCK)
            keys.append(self._key(attempt, str(number)))
            arguments += [start % BLOCK, data[start - begin : (number + 1) * BLOCK - begin]]
        self._store.run(_SHIP, keys, [_KEPT_MS, end, packed(stamps), MOST_TIMES, *arguments])

    def drop(self, attempt: tuple[UUID, int], before: int, end: int) -> None:
        """Remove the blocks that were kept of ``before`` bytes and are not of ``end``."""
        old = {*self._numbers(before)} - {*self._numbers(end)}
        if old:
            self._unlink(attempt, [str(number) for number in old])

    def note(self, attempt: tuple[UUID, int], notes: bytes) -> None:
        self._store.batch(lambda pipe: pipe.set(self._key(attempt, "notes"), notes, px=_KEPT_MS))

    def refresh(self, attempt: tuple[UUID, int], end: int) -> None:
        """A run that is silent for long is still live."""
        keys = [self._key(attempt, name) for name in ("", "times", "notes", *map(str, self._numbers(end)))]
        self._store.batch(lambda pipe: [pipe.pexpire(key, _KEPT_MS) for key in keys])

    def written(self, attempt: tuple[UUID, int]) -> int | None:
        """How many bytes of output there are; None where nothing was shipped."""
        (found,) = self._store.batch(lambda pipe: pipe.get(self._key(attempt)))
        return None if found is None else int(found)

    def output(self, attempt: tuple[UUID, int]) -> Output:
        """What can be seen of it now; nothing where nothing was shipped."""
        numbers = self._numbers(self.written(attempt) or 0)
        names = ["notes", "times", *map(str, numbers)]
        keys = [self._key(attempt, name) for name in names]
        notes, times, *blocks = (
            found or b"" for found in self._store.batch(lambda pipe: [pipe.get(key) for key in keys])
        )
        return _shown(notes, times, dict(zip(numbers, blocks, strict=True)))

    def track(self, attempt: tuple[UUID, int]) -> LiveTrack:
        """For whoever follows it. NotFound: nothing was shipped."""
        end = self.written(attempt)
        if end is None:
            raise NotFound(f"nothing of execution {attempt[0]}, attempt {attempt[1]} is in Redis")
        return LiveTrack(self, attempt, end)

    def notes(self, attempt: tuple[UUID, int]) -> bytes:
        (found,) = self._store.batch(lambda pipe: pipe.get(self._key(attempt, "notes")))
        return found or b""

    def blocks(self, attempt: tuple[UUID, int], position: int, end: int) -> dict[int, bytes]:
        """Those blocks of an output of ``end`` bytes that reach behind ``position``, by number, in order."""
        numbers = [number for number in self._numbers(end) if (number + 1) * BLOCK > position]
        keys = [self._key(attempt, str(number)) for number in numbers]
        found = self._store.batch(lambda pipe: [pipe.get(key) for key in keys])
        return {number: block for number, block in zip(numbers, found, strict=True) if block}

    def forget(self, attempt: tuple[UUID, int], end: int) -> None:
        """The attempt's output is kept elsewhere; ``end``: how many bytes of it there were."""
        self._unlink(attempt, ["", "times", "notes", *map(str, self._numbers(end))])

    def _unlink(self, attempt: tuple[UUID, int], names: Sequence[str]) -> None:
        self._store.batch(lambda pipe: [pipe.unlink(self._key(attempt, name)) for name in names])

    def _numbers(self, end: int) -> list[int]:
        """The blocks that are kept of an output of ``end`` bytes."""
        last = max(0, end - 1) // BLOCK
        return sorted({0, *range(max(0, last - self._blocks + 2), last + 1)})

    def _key(self, attempt: tuple[UUID, int], name: str = "") -> str:
        execution_id, number = attempt
        parts = ["log", str(execution_id), str(number), *([name] if name else [])]
        return self._store.key(shard_in(execution_id), *parts)


@dataclass(frozen=True, slots=True)
class LiveTrack(Track):
    """``end``: how many bytes of output there are. What Redis has dropped is passed over."""

    live: LiveLogs
    attempt: tuple[UUID, int]
    end: int
    whole: bool = False

    def notes(self) -> bytes:
        return self.live.notes(self.attempt)

    def after(self, position: int) -> Iterator[tuple[int, bytes]]:
        if position >= self.end:
            return
        for number, block in self.live.blocks(self.attempt, position, self.end).items():
            begin = max(position, number * BLOCK)
            if data := block[begin - number * BLOCK :]:
                yield begin, data


def _shown(notes: bytes, times: bytes, blocks: dict[int, bytes]) -> Output:
    """The first block, and those up to the last between which nothing is missing."""
    head = blocks.pop(0)
    numbers = sorted(blocks)
    tail: list[bytes] = []
    start = end = len(head)
    for number in reversed(numbers):
        block = blocks[number]
        if not block or (tail and len(block) < BLOCK):
            break
        end = end if tail else number * BLOCK + len(block)
        start = number * BLOCK
        tail.insert(0, block)
    gap = gap_text(start - len(head), LATER) if start > len(head) else b""
    pieces = [piece for piece in (notes, head, gap, *tail) if piece]
    stamps = shown_stamps(unpacked(times), len(notes), len(head), len(gap), range(start, end))
    return Output(iter(pieces), lambda: stamps, sum(map(len, pieces)))
