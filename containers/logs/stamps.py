"""When each part of an output came, and on which stream: kept beside the log, 16 bytes a stamp; pure.

A stamp holds from its position up to the next one. Stamps of several writers may lie in any order and
come twice: of those at one position the earliest is right, the others came from somebody who read the same
bytes later. A record that is torn (its disk was full) is told by its last byte and left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from scheduler_project.kernel.clock import from_micros

RECORD_BYTES = 16
_RECORD = struct.Struct(">QQ")
_WHOLE = 0xA5  # no byte that is missing, or filled up with zeros, reads like it


class Stream(IntEnum):
    """Where bytes come from. BOTH: the runtime keeps the two in one. NOTE: Punctual's own words."""

    BOTH = 0
    STDOUT = 1
    STDERR = 2
    NOTE = 3


class Stamp(NamedTuple):
    """From byte ``position`` on: seen at ``micros`` (since 1970, UTC) on ``stream``."""

    position: int
    micros: int
    stream: Stream


class Span(NamedTuple):
    """Bytes [start, end) of an output, which are shown from ``shown`` on."""

    start: int
    end: int
    shown: int


def packed(stamps: Iterable[Stamp]) -> bytes:
    return b"".join(
        _RECORD.pack(position, (micros << 2 | stream) << 8 | _WHOLE) for position, micros, stream in stamps
    )


def unpacked(data: bytes) -> list[Stamp]:
    """The whole records of ``data``, in order of position, one for each."""
    usable = memoryview(data)[: len(data) // RECORD_BYTES * RECORD_BYTES]
    found = sorted(
        (first, second >> 8) for first, second in _RECORD.iter_unpack(usable) if second & 0xFF == _WHOLE
    )
    stamps: list[Stamp] = []
    for position, rest in found:
        if not stamps or stamps[-1].position != position:
            stamps.append(Stamp(position, rest >> 2, Stream(rest & 3)))
    return stamps


def placed(stamps: Sequence[Stamp], spans: Iterable[Span]) -> list[Stamp]:
    """``stamps``, which are in order, by where their bytes are shown; those of no span are left out."""
    shown: list[Stamp] = []
    for span in spans:
        before: Stamp | None = None
        inside: list[Stamp] = []
        for stamp in stamps:
            if stamp.position <= span.start:
                before = stamp
            elif stamp.position < span.end:
                inside.append(stamp)
        first = [] if before is None or span.start == span.end else [before._replace(position=span.start)]
        shown += [
            stamp._replace(position=stamp.position - span.start + span.shown) for stamp in [*first, *inside]
        ]
    return shown


def stamped(pieces: Iterable[bytes], stamps: Iterable[Stamp]) -> Iterator[bytes]:
    """``pieces`` with the time and the stream before each line: that of the line's first byte.

    The form is ``2026-12-24T18:00:00.123456Z stderr text``; ``-`` stands for what is not known.
    """
    prefixes = _Prefixes(iter(stamps))
    position, at_line_start = 0, True
    for piece in pieces:
        lines: list[bytes] = []
        begin = 0
        while begin < len(piece):
            if at_line_start:
                lines.append(prefixes.at(position + begin))
            end = piece.find(b"\n", begin) + 1
            at_line_start = end > 0
            lines.append(piece[begin : end or len(piece)])
            begin = end or len(piece)
        position += len(piece)
        yield b"".join(lines)


class _Prefixes:
    """The text before a line, by the place where it begins; asked for in order."""

    def __init__(self, stamps: Iterator[Stamp]) -> None:
        self._stamps = stamps
        self._next = next(stamps, None)
        self._text = b"- - "

    def at(self, position: int) -> bytes:
        current: Stamp | None = None
        while self._next is not None and self._next.position <= position:
            current = self._next
            self._next = next(self._stamps, None)
        if current is not None:
            self._text = _prefix(current)
        return self._text


_NAMES = {Stream.BOTH: "-", Stream.STDOUT: "stdout", Stream.STDERR: "stderr"}


def _prefix(stamp: Stamp) -> bytes:
    if stamp.stream is Stream.NOTE:
        return b""
    at = from_micros(stamp.micros)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}Z {_NAMES[stamp.stream]} ".encode()
