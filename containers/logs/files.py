"""The files of one attempt's log: their names, and which byte of the output lies in which.

    <folder>/2026-12-24/<execution>/3.log            bytes [0, head)
                                    3.log.times      when each of them came, and on which stream (stamps.py)
                                    3.log.17         bytes [head + 17·tail, head + 18·tail)
                                    3.log.17.times
                                    3.log.18         the segment that is being written
                                    3.log.18.times
                                    3.notes          what Punctual itself says before the run begins
                                    3.ended          there: the output is whole, and can be archived

A byte's place follows from its position in the output alone. Of the segments behind the head only the
two newest are kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scheduler_project.kernel.errors import InvalidValue

HEAD = -1  # the number of the part that begins the output
TIMES = ".times"


@dataclass(frozen=True, slots=True)
class LogLimit:
    """Bytes kept of one attempt's output: the first ``head`` and (at least) the last ``tail``."""

    head: int = 8 * 1024 * 1024
    tail: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.head < 1 or self.tail < 1:
            raise InvalidValue(
                f"a log limit of {self.head} + {self.tail} bytes: both parts must be at least 1",
                field="logLimit",
            )


@dataclass(frozen=True, slots=True)
class LogFiles:
    """``head``: the file that the output begins in."""

    head: Path
    limit: LogLimit

    @property
    def notes(self) -> Path:
        return self.head.with_suffix(".notes")

    @property
    def ended(self) -> Path:
        return self.head.with_suffix(".ended")

    def part(self, number: int) -> Path:
        """The file of the head or of the segment ``number``."""
        return self.head if number == HEAD else self.head.with_name(f"{self.head.name}.{number}")

    def times(self, number: int) -> Path:
        part = self.part(number)
        return part.with_name(part.name + TIMES)

    def begin(self, number: int) -> int:
        """The position of a part's first byte."""
        return 0 if number == HEAD else self.limit.head + number * self.limit.tail

    def place(self, position: int) -> tuple[int, int, int]:
        """The part of the byte at ``position``, its offset there, and how many bytes fit from there on."""
        if position < self.limit.head:
            return HEAD, position, self.limit.head - position
        number, offset = divmod(position - self.limit.head, self.limit.tail)
        return number, offset, self.limit.tail - offset

    def segments(self) -> list[int]:
        """The numbers of the segments that are there, in order."""
        prefix = self.head.name + "."
        try:
            names = [found.name for found in self.head.parent.iterdir()]
        except FileNotFoundError:
            return []
        suffixes = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return sorted(int(suffix) for suffix in suffixes if suffix.isdigit())

    def written(self) -> int:
        """How many bytes of the output have been written, whether or not all are kept."""
        last = max(self.segments(), default=HEAD)
        return self.begin(last) + self.part(last).stat().st_size

    def read(self, begin: int, end: int) -> bytes:
        """The bytes [begin, end) of the output; fewer where some are not there (any more)."""
        found = bytearray()
        while begin < end:
            number, offset, room = self.place(begin)
            try:
                with self.part(number).open("rb", buffering=0) as file:
                    piece = os.pread(file.fileno(), min(room, end - begin), offset)
            except FileNotFoundError:
                break
            if not piece:
                break
            found += piece
            begin += len(piece)
        return bytes(found)

    def drop_segments_before(self, number: int) -> None:
        for old in self.segments():
            if old < number:
                self.part(old).unlink(missing_ok=True)
                self.times(old).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all of it, and the folder where it was the last in it; idempotent. Raises OSError."""
        for number in [*self.segments(), HEAD]:
            self.part(number).unlink(missing_ok=True)
            self.times(number).unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)
        self.ended.unlink(missing_ok=True)  # last: who was interrupted is called again
        try:
            self.head.parent.rmdir()
        except OSError:
            return  # another attempt's log is there
