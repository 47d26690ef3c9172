"""What is kept of one attempt's output, as it is shown: notes, head, the gap stated, tail.

    notes │ head bytes of the output │ [1,234 bytes of output are left out here] │ tail

``Output`` is read once, from wherever it lies; its stamps say when each part came, by the places at
which the bytes are shown.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.logs.files import HEAD, LogFiles
from containers.logs.stamps import Span, Stamp, Stream, placed, unpacked

CHUNK = 256 * 1024
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Output:
    """``pieces``: the bytes, to be iterated once. ``stamps``: asked for if needed.

    ``size``: how many bytes the pieces are together; None where only reading them tells.
    """

    pieces: Iterator[bytes]
    stamps: Callable[[], Sequence[Stamp]]
    size: int | None = None


def gap_text(left_out: int, why: str = "are left out here") -> bytes:
    return f"\n[{left_out:,} bytes of output {why}]\n".encode()


def shown_stamps(stamps: Sequence[Stamp], notes: int, head: int, gap: int, tail: range) -> list[Stamp]:
    """``stamps``, by positions in the output and in order, by the places of their bytes in what is shown.

    ``notes``, ``head``, ``gap``: how many bytes are shown of each. ``tail``: its positions in the output.
    """
    found = [Stamp(0, 0, Stream.NOTE)] if notes else []
    found += placed(stamps, [Span(0, head, notes)])
    if gap:
        found.append(Stamp(notes + head, 0, Stream.NOTE))
    return found + placed(stamps, [Span(tail.start, tail.stop, notes + head + gap)])


def read_files(files: LogFiles) -> Output:
    """The output as it is now, also while it is written or removed. FileNotFoundError: there is none."""
    for _ in range(_TRIES):
        held = _Held()
        held.open(files.head)
        kept = files.segments()[-2:]
        found = [held.find(files.part(number)) for number in kept]
        if all(found):
            break
    for extra in (files.notes, *map(files.times, (HEAD, *kept))):
        held.find(extra)
    return _shown(files, held, kept)


def _shown(files: LogFiles, held: _Held, kept: list[int]) -> Output:
    notes, head = held.size(files.notes), held.size(files.head)
    start = end = head
    if kept:
        end = files.begin(kept[-1]) + held.size(files.part(kept[-1]))
        start = max(end - files.limit.tail, files.begin(kept[0]))
    gap = gap_text(start - head) if start > head else b""

    def pieces() -> Iterator[bytes]:
        yield from held.pieces(files.notes, 0, notes)
        yield from held.pieces(files.head, 0, head)
        yield from [gap] if gap else []
        for number in kept:
            begin = files.begin(number)
            yield from held.pieces(
                files.part(number), max(0, start - begin), min(end - begin, files.limit.tail)
            )

    def stamps() -> list[Stamp]:
        records = b"".join(held.content(files.times(number)) for number in (HEAD, *kept))
        return shown_stamps(unpacked(records), notes, head, len(gap), range(start, end))

    return Output(pieces(), stamps, notes + head + len(gap) + end - start)


class _Held:
    """Files that are held open: what is removed meanwhile can still be read. What is missing is empty."""

    def __init__(self) -> None:
        self._descriptors: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._descriptors)

    def open(self, path: Path) -> None:
        self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def find(self, path: Path) -> bool:
        try:
            self.open(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: Path) -> int:
        return os.fstat(self._descriptors[path]).st_size if path in self._descriptors else 0

    def pieces(self, path: Path, begin: int, end: int) -> Iterator[bytes]:
        while begin < end and path in self._descriptors:
            piece = os.pread(self._descriptors[path], min(CHUNK, end - begin), begin)
            if not piece:
                return
            begin += len(piece)
            yield piece

    def content(self, path: Path) -> bytes:
        return b"".join(self.pieces(path, 0, self.size(path)))


def _close_all(descriptors: dict[Path, int]) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)
