"""One attempt's output by positions, for whoever follows it: from any byte on, also while it grows.

A position counts the bytes of the run's own output, whatever has been dropped of it since; notes are beside
that. Where what is asked for is gone, the next piece begins behind it: the position tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from containers.logs.files import LogFiles
from containers.logs.output import Output
from containers.logs.stamps import Stamp, Stream

CHUNK = 64 * 1024
ALL = 1 << 62  # more bytes than any output has
LONGEST_GAP = 128
_GAP = re.compile(rb"\n\[([0-9,]+) bytes of output [a-z ]+\]\n")


class Track(Protocol):
    """``whole``: it is complete, nothing will be added."""

    whole: bool

    def notes(self) -> bytes:
        """All that Punctual has said before the run began."""
        ...

    def after(self, position: int) -> Iterator[tuple[int, bytes]]:
        """What there is now from ``position`` on, in order: pieces, and where each begins."""
        ...


@dataclass(frozen=True, slots=True)
class FileTrack(Track):
    """In files that are being written, and may be removed meanwhile."""

    files: LogFiles
    whole: bool = False

    def notes(self) -> bytes:
        try:
            return self.files.notes.read_bytes()
        except FileNotFoundError:
            return b""

    def after(self, position: int) -> Iterator[tuple[int, bytes]]:
        while True:
            data = self.files.read(position, position + CHUNK)
            if not data:
                position = self._kept_behind(position)
                data = self.files.read(position, position + CHUNK)
            if not data:
                return
            yield position, data
            position += len(data)

    def _kept_behind(self, position: int) -> int:
        """Where the first segment begins that is behind ``position``, which has been dropped."""
        begins = map(self.files.begin, self.files.segments())
        return next((begin for begin in begins if begin > position), position)


class OutputTrack(Track):
    """Of an output that is read once, as it is shown: for one reader, who asks ``after`` once."""

    whole = True

    def __init__(self, output: Output) -> None:
        self._begin, self._gap = _borders(output.stamps())
        self._bytes = _Bytes(output.pieces)
        self._notes: bytes | None = None

    def notes(self) -> bytes:
        if self._notes is None:
            self._notes = b"".join(self._bytes.pieces(self._begin))
        return self._notes

    def after(self, position: int) -> Iterator[tuple[int, bytes]]:
        for begin, data in self._positioned():
            if data and begin + len(data) > position:
                skipped = max(0, position - begin)
                yield begin + skipped, data[skipped:]

    def _positioned(self) -> Iterator[tuple[int, bytes]]:
        """The run's own bytes; behind the gap they count from what it says is left out."""
        self.notes()
        position = 0
        for data in self._bytes.pieces(None if self._gap is None else self._gap - self._begin):
            yield position, data
            position += len(data)
        said = b"".join(self._bytes.pieces(LONGEST_GAP))
        if found := _GAP.match(said):
            position += int(found[1].replace(b",", b""))
            said = said[found.end() :]
        for data in (said, *self._bytes.pieces(None)):
            yield position, data
            position += len(data)


def _borders(stamps: Sequence[Stamp]) -> tuple[int, int | None]:
    """Where in what is shown the notes end, and where the words begin that state the gap."""
    begin = 0
    for number, stamp in enumerate(stamps):
        if stamp.stream is not Stream.NOTE:
            continue
        if stamp.position > 0:
            return begin, stamp.position
        begin = stamps[number + 1].position if number + 1 < len(stamps) else ALL
    return begin, None


class _Bytes:
    """``pieces`` in portions of a given size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def pieces(self, most: int | None) -> Iterator[bytes]:
        """The next ``most`` bytes, or all that is left; what is behind them is kept."""
        while most is None or most > 0:
            data = self._left or next(self._pieces, b"")
            if not data:
                return
            taken = data if most is None else data[:most]
            self._left = data[len(taken) :]
            most = None if most is None else most - len(taken)
            yield taken
