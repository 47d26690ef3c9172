"""The output of runs, kept in a folder, with a limit per attempt.

    <folder>/2026-12-24/<execution>/3.log          bytes [0, head)
                                    3.log.17       bytes [head + 17·tail, head + 18·tail)
                                    3.log.18       the segment that is being written

The day is that of the run's due time (the leading 48 bits of its id, in milliseconds), so that
retention removes whole folders. A byte's place follows from its position in the output alone:
whoever writes it, and however often, it lands in the same place. That is why a log can neither
double nor tear when a second worker attaches while the first is merely slow. Of the segments
behind the head only the two newest are kept; reading states the gap.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from uuid import UUID

from scheduler_project.kernel.clock import from_millis
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.folders import make_private_folder

CHUNK = 256 * 1024
UNDATED = "undated"


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


class LogWriter:
    """Writes one attempt's output, from where an earlier writer left off. For one thread at a time.

    Every byte is handed to the operating system at once: what ``position`` counts survives the
    death of this process.
    """

    def __init__(self, path: Path, limit: LogLimit) -> None:
        self._path = path
        self._limit = limit
        self._descriptor: int | None = None
        self._opened: Path | None = None
        make_private_folder(path.parent)
        path.touch(mode=0o600)
        self.position = _written(path, limit)

    def write(self, data: bytes) -> None:
        """Append ``data``. Raises OSError, as when the disk is full."""
        view = memoryview(data)
        while view:
            taken = self._write_within_file(view)
            self.position += taken
            view = view[taken:]

    def close(self) -> None:
        """Let go of the file; a later write opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._opened = None, None

    def _write_within_file(self, view: memoryview) -> int:
        path, offset, room = self._place()
        return os.pwrite(self._open(path), view[:room], offset)

    def _open(self, path: Path) -> int:
        if self._descriptor is None or path != self._opened:
            self.close()
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._opened = path
        return self._descriptor

    def _place(self) -> tuple[Path, int, int]:
        """The file of the next byte, its offset there, and how many bytes still fit."""
        if self.position < self._limit.head:
            return self._path, self.position, self._limit.head - self.position
        number, offset = divmod(self.position - self._limit.head, self._limit.tail)
        if offset == 0:
            self._drop_segments_before(number - 1)
        return _segment(self._path, number), offset, self._limit.tail - offset

    def _drop_segments_before(self, number: int) -> None:
        for old in _segment_numbers(self._path):
            if old < number:
                _segment(self._path, old).unlink(missing_ok=True)


class LogStore:
    """All logs below one folder."""

    def __init__(self, folder: Path, limit: LogLimit | None = None) -> None:
        self._folder = folder
        self._limit = limit or LogLimit()

    def writer(self, execution_id: UUID, attempt: int) -> LogWriter:
        return LogWriter(self._path(execution_id, attempt), self._limit)

    def attempts(self, execution_id: UUID) -> list[int]:
        """The attempts that have a log, in order."""
        logs = self._run_folder(execution_id).glob("*.log")
        return sorted(int(path.stem) for path in logs if path.stem.isdigit())

    def read(self, execution_id: UUID, attempt: int | None = None) -> Iterator[bytes]:
        """The log of an attempt (None: the newest) in pieces of at most CHUNK bytes.

        Raises NotFound, at once, where there is none.
        """
        if attempt is None:
            attempt = next(reversed(self.attempts(execution_id)), 0)
        path = self._path(execution_id, attempt)
        if not path.exists():
            raise NotFound(f"there is no log of execution {execution_id}, attempt {attempt}")
        return self._pieces(path)

    def forget(self, execution_id: UUID) -> None:
        """Remove all logs of one execution; idempotent."""
        folder = self._run_folder(execution_id)
        if folder.is_dir():
            shutil.rmtree(folder)

    def forget_before(self, day: date) -> list[str]:
        """Remove the logs of all runs that were due before ``day``; the names of the days removed."""
        if not self._folder.is_dir():
            return []
        # "undated" sorts behind every date, so it is never taken.
        old = sorted(folder.name for folder in self._folder.iterdir() if folder.name < day.isoformat())
        for name in old:
            shutil.rmtree(self._folder / name)
        return old

    def _pieces(self, path: Path) -> Iterator[bytes]:
        yield from _chunks(path, 0)
        kept = _segment_numbers(path)[-2:]
        if not kept:
            return
        end = _written(path, self._limit)
        start = max(end - self._limit.tail, self._limit.head + kept[0] * self._limit.tail)
        left_out = start - self._limit.head
        if left_out:
            yield f"\n[{left_out:,} bytes of output are left out here]\n".encode()
        for number in kept:
            yield from _chunks(_segment(path, number), start - self._limit.head - number * self._limit.tail)

    def _path(self, execution_id: UUID, attempt: int) -> Path:
        return self._run_folder(execution_id) / f"{attempt}.log"

    def _run_folder(self, execution_id: UUID) -> Path:
        return self._folder / due_day(execution_id) / str(execution_id)


def due_day(execution_id: UUID) -> str:
    """The UTC day of the due time in the id, as 2026-12-24; ``undated`` beyond the year 9999."""
    try:
        return from_millis(execution_id.int >> 80).date().isoformat()
    except OverflowError:
        return UNDATED


def _segment(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _segment_numbers(path: Path) -> list[int]:
    suffixes = (found.name.removeprefix(path.name + ".") for found in path.parent.glob(path.name + ".*"))
    return sorted(int(suffix) for suffix in suffixes if suffix.isdigit())


def _written(path: Path, limit: LogLimit) -> int:
    """How many bytes of the output have been written, whether or not all are kept."""
    numbers = _segment_numbers(path)
    if not numbers:
        return path.stat().st_size
    return limit.head + numbers[-1] * limit.tail + _segment(path, numbers[-1]).stat().st_size


def _chunks(path: Path, offset: int) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return  # a live log: the segment has just been dropped
    with file:
        file.seek(max(offset, 0))
        while piece := file.read(CHUNK):
            yield piece
