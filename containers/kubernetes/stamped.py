"""A pod's log with its time stamps, read in several streams, as one output; pure.

Each line begins with the time at which the node got it. A stream that broke off is resumed by asking
for the lines since a second before the last one (a cluster takes whole seconds only); of those, what
was read already is left out: line by line, and within the line at which the stream broke.

A node keeps long lines, and those that are written piece by piece, in parts; the time that is asked for
picks parts. A resumed stream may therefore begin in the middle of a line: without a time stamp, or, where
a file of the node begins there, with that of the part. Such a line is older than the last one that was
seen to begin, and so was read to its end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime

from containers.logs.stamps import Stamp, Stream

STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")
LONG_LINE = 64 * 1024
SAME_MICROS = 1000  # to which a log knows its times
_Seen = dict[int, dict[bytes, list[int]]]  # second: time stamp: bytes taken of each of its lines, in order


class StampedOutput:
    """``skip``: bytes of the whole output that are kept already, by an earlier reader.

    ``kept``: when the first and the last of them came, in microseconds. A node drops the beginning of a
    long log; where the first line that it has is none of the beginning, what is kept is told by these
    times (``rotated``), to the millisecond. It is ``rotated`` too where a stream that is resumed has
    nothing of the second that was asked for.

    ``begin``: when the node got the first line that it has, in microseconds. ``stamps``: when it got what
    was taken last, by its places.
    """

    def __init__(self, skip: int = 0, kept: tuple[int, int] | None = None) -> None:
        self.rotated = False
        self.begin: int | None = None
        self._kept = kept
        self._after = 0
        self.stamps: list[Stamp] = []
        self._fresh = 0
        self._micros = 0
        self._skip = skip
        self._rest = b""
        self._seen: _Seen = {}
        self._before: _Seen = {}
        self._second_text = b""
        self._second_of_text = 0
        self._second_of_line = 0
        self._second = 0  # the latest
        self._line: bytes | None = None  # the time stamp of the line that is being taken
        self._in_line = 0
        self._known = 0
        self._latest = 0  # microseconds: the last that any line began
        self._old = False  # what is being taken is the rest of a line that was taken before, or no line
        self._resumed = False
        self._at_start = True  # no line of this stream has begun
        self._unstamped_start = False
        self._unstamped_later = False

    @property
    def foreign(self) -> bool:
        """Whether the stream had text that is not the run's: what a node says in place of a log."""
        return self._unstamped_later or (self._unstamped_start and self._at_start)

    def since(self) -> str | None:
        """A new stream begins: the time to ask for, RFC 3339; None for all of it."""
        self._before = _together(self._seen, self._before)
        self._seen = {}
        self._rest = b""
        self._line = None
        self._old = self._unstamped_start = self._unstamped_later = False
        self._at_start = True
        self._resumed = bool(self._before)
        if not self._resumed:
            return None
        earliest = datetime.fromtimestamp(self._second - 1, UTC)
        return earliest.strftime("%Y-%m-%dT%H:%M:%SZ")

    def take(self, piece: bytes) -> bytes:
        """What of the next piece of the stream was not taken before, without the time stamps: ``stamps``."""
        self.stamps, self._fresh = [], 0
        *lines, rest = (self._rest + piece).split(b"\n")
        fresh = [self._content(line + b"\n", ended=True) for line in lines]
        if len(rest) > LONG_LINE:
            fresh.append(self._content(rest, ended=False))
            rest = b""
        self._rest = rest
        return b"".join(fresh)

    def end(self) -> bytes:
        """The stream has ended as streams do: what is left is a line without its end."""
        self.stamps, self._fresh = [], 0
        rest, self._rest = self._rest, b""
        return self._content(rest, ended=False) if rest else b""

    def _content(self, data: bytes, *, ended: bool) -> bytes:
        if self._line is None and not self._old:
            data = self._begin(data)
        fresh = b"" if self._old else self._fresh_of(data)
        if ended:
            self._line, self._old = None, False
        return fresh

    def _fresh_of(self, data: bytes) -> bytes:
        fresh = data[max(0, self._known - self._in_line) :]
        self._in_line += len(data)
        lengths = self._seen[self._second_of_line][self._line or b""]
        lengths[-1] = max(self._known, self._in_line)
        if self._micros <= self._after:
            return b""
        left, self._skip = fresh[self._skip :], max(0, self._skip - len(fresh))
        if left:
            self.stamps.append(Stamp(self._fresh, self._micros, Stream.BOTH))
            self._fresh += len(left)
        return left

    def _begin(self, data: bytes) -> bytes:
        """A line, or the rest of one, begins with ``data``: what of that is its content."""
        found = STAMP.match(data)
        if found is None or data[found.end() : found.end() + 1] != b" ":
            self._old = True
            if self._at_start:
                self._unstamped_start = True
            else:
                self._unstamped_later = True
            return b""
        self._begin_stamped(found)
        return data[found.end() + 1 :]

    def _begin_stamped(self, found: re.Match[bytes]) -> None:
        second = self._read_second(found)
        micros = second * 1_000_000 + int((found[2] or b"").ljust(6, b"0")[:6])
        before = self._before.get(second, {}).get(found[0])
        at_start, self._at_start = self._at_start, False
        if at_start and self._resumed and not before and not self._unstamped_start:
            self._old = micros <= self._latest
            self.rotated = self.rotated or not self._old
        if self._old:
            return
        self._latest = max(self._latest, micros)
        self._line, self._in_line = found[0], 0
        self._second_of_line, self._micros = second, micros
        if self.begin is None:
            self.begin = micros
        if self._kept is not None:
            self._meet_first(*self._kept)
        self._known = before.pop(0) if before else 0
        self._seen.setdefault(second, defaultdict(list))[self._line].append(self._known)

    def _meet_first(self, first: int, last: int) -> None:
        """The first line of all that the node has."""
        self._kept = None
        if self._micros > first + SAME_MICROS:
            self.rotated, self._after, self._skip = True, last, 0

    def _read_second(self, found: re.Match[bytes]) -> int:
        text = found[1] + found[3]
        if text == self._second_text:
            return self._second_of_text
        self._second_text = text
        self._second_of_text = second = int(datetime.fromisoformat(text.decode()).timestamp())
        if second > self._second:
            self._second = second
            for seen in (self._seen, self._before):
                for old in [at for at in seen if at < second - 1]:
                    del seen[old]
        return second


def _together(first: _Seen, then: _Seen) -> _Seen:
    """What was seen in the last stream, and behind it what that stream had not come to."""
    result: _Seen = {}
    for seen in (first, then):
        for second, stamps in seen.items():
            kept = result.setdefault(second, {})
            for stamp, lengths in stamps.items():
                kept[stamp] = kept.get(stamp, []) + lengths
    return result
