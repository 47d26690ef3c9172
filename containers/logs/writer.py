"""Writing one attempt's output, so that it may be written twice.

    output ─▶ mask ─▶ cut at the ends of the files ─▶ stamps, then bytes, each where its position says

Whoever writes a byte, and however often, it lands in the same place and is masked alike. That is why a
log can neither double nor tear when a second worker attaches while the first is merely slow. Stamps are
written before their bytes: a byte never has the time of an earlier one because its writer died.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from containers.logs.files import HEAD, LogFiles, LogLimit
from containers.logs.masking import Masker, masked
from containers.logs.stamps import RECORD_BYTES, Stamp, Stream, packed, unpacked
from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock, to_micros
from scheduler_project.kernel.folders import make_private_folder

MOST_NOTES = 256 * 1024
SAME_MICROS = 1000  # what comes on one stream within a millisecond has one stamp
SPARE_STAMPS = 256  # beyond these, the stamps of a file may take as many bytes as its output


class LogWriter:
    """Writes one attempt's output, from where an earlier writer left off. For one thread at a time.

    ``position`` is where the output is to be read from next. Every byte that may be shown is handed to
    the operating system at once, and so survives the death of this process. ``hidden``: values of
    secrets, which are masked.
    """

    def __init__(
        self, path: Path, limit: LogLimit, hidden: Iterable[str] = (), *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.position = 0
        self.files = LogFiles(path, limit)
        self._hidden = tuple(hidden)
        self._clock = clock
        self.stored = 0  # bytes of the output that are in the files, whoever wrote them
        self._told = 0  # where what the mask tells next belongs
        self._mask = Masker(self._hidden)
        self._marks: deque[Stamp] = deque()  # of what is not stored yet
        self._mark: Stamp | None = None  # of what was stored last
        self._bytes = _OpenFile(os.O_WRONLY)
        self._times = _OpenFile(os.O_WRONLY | os.O_APPEND)
        self._begun = False
        with suppress(OSError):  # told by the first write, which may succeed where this did not
            self._begin()

    def write(self, data: bytes, stamps: Sequence[Stamp] = ()) -> None:
        """Append ``data``. Raises OSError, as when the disk is full: go on from ``position`` then.

        ``stamps``: when its parts came, by their places in ``data``; none: all of it came now.
        """
        expected = self.position
        try:
            self._begin()
            if self.position != expected:
                raise OSError(f"{self.files.head} holds {self.stored} bytes already")
            self._take(data, stamps)
        except OSError:
            self._go_back()
            raise

    @property
    def known(self) -> int:
        """Bytes from ``position`` on that are stored already: they are asked for once more, for the mask."""
        return max(0, self.stored - self.position)

    def times(self) -> tuple[int, int] | None:
        """When the first and the last stored byte came, in microseconds; None where there is none, or no
        record of it."""
        try:
            last = max(self.files.segments(), default=HEAD)
            stamps = [unpacked(self.files.times(part).read_bytes()) for part in (HEAD, last)]
        except OSError:
            return None
        return (stamps[0][0].micros, stamps[1][-1].micros) if all(stamps) else None

    def note(self, text: str) -> None:
        """Append a line of Punctual's own, with the time, to what is shown before the output.

        Beyond MOST_NOTES bytes it is left out. Raises OSError.
        """
        said = masked(" ".join(text.split()), self._hidden)
        line = f"[punctual {self._clock.now():%Y-%m-%dT%H:%M:%SZ}] {said}\n"
        make_private_folder(self.files.notes.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(self.files.notes, flags, 0o600), "ab") as file:
            if file.tell() < MOST_NOTES:
                file.write(line.encode(errors="replace"))

    def finish(self) -> None:
        """The output has ended: store what was held back, and mark the log as whole. Raises OSError."""
        try:
            self._begin()
            self._store(self._mask.finish())
            self.files.ended.touch(mode=0o600)
        except OSError:
            self._go_back()
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the files; a later write opens them again."""
        self._bytes.close()
        self._times.close()

    def _begin(self) -> None:
        if self._begun:
            return
        make_private_folder(self.files.head.parent)
        self.files.head.touch(mode=0o600)
        self.stored = self.files.written()
        self._go_back()
        self._begun = True

    def _go_back(self) -> None:
        """What was taken and is not stored is to be given again, and what the mask has to see before it."""
        self._mask = Masker(self._hidden)
        self._told = self.position = max(0, self.stored - self._mask.context)
        self._marks.clear()
        self._mark = None
        self.close()

    def _take(self, data: bytes, stamps: Sequence[Stamp]) -> None:
        stamps = stamps or [Stamp(0, to_micros(self._clock.now()), Stream.BOTH)]
        for place, micros, stream in stamps:
            self._marks.append(Stamp(self.position + place, micros, stream))
        told = self._masked(data, stamps)
        self.position += len(data)
        self._store(told)

    def _masked(self, data: bytes, stamps: Sequence[Stamp]) -> bytes:
        if not self._mask.context:
            return data
        parts = [next(group) for _, group in groupby(stamps, attrgetter("stream"))]
        ends = [part.position for part in parts[1:]] + [len(data)]
        begins = [0, *ends]
        return b"".join(
            self._mask.feed(data[begin:end], part.stream)
            for begin, end, part in zip(begins, ends, parts, strict=False)
        )

    def _store(self, told: bytes) -> None:
        view = memoryview(told)[max(0, self.stored - self._told) :]  # the rest is there already
        self._told += len(told)
        while view:
            view = view[self._store_within_file(view) :]

    def _store_within_file(self, view: memoryview) -> int:
        number, offset, room = self.files.place(self.stored)
        if offset == 0:
            self.files.drop_segments_before(number - 1)
        end = self.stored + min(room, len(view))
        if stamps := self._stamps_until(end, new_file=offset == 0):
            self._note_times(number, stamps)
        taken = os.pwrite(self._bytes.of(self.files.part(number)), view[:room], offset)
        self.stored += taken
        return taken

    def _stamps_until(self, end: int, *, new_file: bool) -> list[Stamp]:
        """Those of the bytes from what is stored to ``end`` that say something new."""
        stamps = [] if self._mark is None or not new_file else [self._mark._replace(position=self.stored)]
        while self._marks and self._marks[0].position < end:
            mark = self._marks.popleft()
            if mark.position < self.stored:
                mark = mark._replace(position=self.stored)
            if mark.position == self.stored:
                stamps = []
            if self._mark is None or new_file or _differ(self._mark, mark):
                stamps.append(mark)
                self._mark = mark
        return stamps

    def _note_times(self, number: int, stamps: list[Stamp]) -> None:
        descriptor = self._times.of(self.files.times(number))
        size = self._times.size
        begin = self.files.begin(number)
        fitting = [
            stamp
            for count, stamp in enumerate(stamps, size // RECORD_BYTES + 1)
            if (count - SPARE_STAMPS) * RECORD_BYTES <= stamp.position - begin
        ]
        torn = bytes(-size % RECORD_BYTES)  # of a writer whose disk was full
        data = torn + packed(fitting)
        if data and os.write(descriptor, data) != len(data):
            raise OSError(f"{self.files.times(number)} could not be written")
        self._times.size += len(data)


def _differ(earlier: Stamp, later: Stamp) -> bool:
    return earlier.stream != later.stream or abs(later.micros - earlier.micros) >= SAME_MICROS


class WithholdingWriter(LogWriter):
    """Keeps nothing of what it is given: for a watcher that does not know what is to be masked."""

    def write(self, data: bytes, stamps: Sequence[Stamp] = ()) -> None:
        self.position += len(data)


class _OpenFile:
    """The one file of its kind that is open, and its ``size`` when it was opened."""

    def __init__(self, flags: int) -> None:
        self._flags = flags | os.O_CREAT | os.O_CLOEXEC
        self._path: Path | None = None
        self._descriptor: int | None = None
        self.size = 0

    def of(self, path: Path) -> int:
        if self._descriptor is None or path != self._path:
            self.close()
            self._descriptor = os.open(path, self._flags, 0o600)
            self._path = path
            self.size = os.fstat(self._descriptor).st_size
        return self._descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._path = None
