"""Parts of a text that comes in pieces: a range of its bytes, its last lines; pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOST_TAIL_BYTES = 8 * 1024 * 1024
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """``first`` None: the last ``last`` bytes; ``last`` None: up to the end; else both of them included."""

    first: int | None
    last: int | None

    def within(self, total: int) -> tuple[int, int] | None:
        """The part [begin, end) of ``total`` bytes; None where none of them is meant."""
        if self.first is None:
            begin, end = max(0, total - (self.last or 0)), total
        else:
            begin, end = self.first, total if self.last is None else min(total, self.last + 1)
        return (begin, end) if begin < end else None


def read_range(header: str) -> ByteRange | None:
    """The one range that a Range header asks for; None for all of it: any other is ignored (RFC 9110)."""
    found = _RANGE.fullmatch(header.replace(" ", ""))
    if found is None or not any(found.groups()):
        return None
    first, last = (int(text) if text else None for text in found.groups())
    return None if first is not None and last is not None and first > last else ByteRange(first, last)


def cut(pieces: Iterable[bytes], begin: int, end: int) -> Iterator[bytes]:
    """Bytes [begin, end) of ``pieces``."""
    position = 0
    for piece in pieces:
        if part := piece[max(0, begin - position) : end - position]:
            yield part
        position += len(piece)
        if position >= end:
            return


def last_lines(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """The last ``count`` lines, of MOST_TAIL_BYTES at most; what lacks its line end is a line too."""
    kept: deque[bytes] = deque()
    size = ends = 0
    for piece in pieces:
        if not piece:
            continue
        kept.append(piece)
        size += len(piece)
        ends += piece.count(b"\n")
        while size - len(kept[0]) >= MOST_TAIL_BYTES or ends - kept[0].count(b"\n") > count:
            gone = kept.popleft()
            size -= len(gone)
            ends -= gone.count(b"\n")
    text = b"".join(kept)[-MOST_TAIL_BYTES:]
    begin = len(text) - text.endswith(b"\n")
    for _ in range(count):
        begin = text.rfind(b"\n", 0, begin)
        if begin < 0:
            break
    yield text[begin + 1 :] if count else b""
