"""The output of runs, kept in a folder, with a limit per attempt; read by whoever shares it.

The files are described in files.py. The day in their path is that of the run's due time (the leading
48 bits of its id, in milliseconds), so that retention removes whole folders. What has ended moves to an
archive elsewhere; what lies here is live, or waits for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from uuid import UUID

from containers.logs.files import LogFiles, LogLimit
from containers.logs.output import Output, read_files
from containers.logs.writer import MOST_NOTES, LogWriter, WithholdingWriter
from scheduler_project.kernel.clock import from_millis, to_micros, utcnow
from scheduler_project.kernel.errors import NotFound

__all__ = ["MOST_NOTES", "LogLimit", "LogStore", "LogWriter", "due_day"]

UNDATED = "undated"


class LogStore:
    """All logs below one folder."""

    def __init__(self, folder: Path, limit: LogLimit | None = None) -> None:
        self._folder = folder
        self._limit = limit or LogLimit()

    def writer(self, execution_id: UUID, attempt: int, hidden: Iterable[str] = ()) -> LogWriter:
        """``hidden``: values of secrets, which are masked."""
        return LogWriter(self.files(execution_id, attempt).head, self._limit, hidden)

    def withholding(self, execution_id: UUID, attempt: int) -> LogWriter:
        """Beside what is there, only notes."""
        return WithholdingWriter(self.files(execution_id, attempt).head, self._limit)

    def files(self, execution_id: UUID, attempt: int) -> LogFiles:
        return LogFiles(self._run_folder(execution_id) / f"{attempt}.log", self._limit)

    def attempts(self, execution_id: UUID) -> list[int]:
        """The attempts that have a log, in order."""
        logs = self._run_folder(execution_id).glob("*.log")
        return sorted(int(path.stem) for path in logs if path.stem.isdigit())

    def ended(self, *, older_than_s: float = 0.0) -> list[tuple[UUID, int]]:
        """The attempts whose output is whole, for that long at least, and still lies here."""
        latest = to_micros(utcnow()) / 1e6 - older_than_s
        found = [path for path in self._folder.glob("*/*/*.ended") if path.stat().st_mtime <= latest]
        return sorted((UUID(path.parent.name), int(path.stem)) for path in found)

    def output(self, execution_id: UUID, attempt: int) -> Output:
        """The output of an attempt as it is now. Raises NotFound, at once, where there is none."""
        try:
            return read_files(self.files(execution_id, attempt))
        except FileNotFoundError:
            raise NotFound(f"there is no log of execution {execution_id}, attempt {attempt}") from None

    def read(self, execution_id: UUID, attempt: int | None = None) -> Iterator[bytes]:
        """The log of an attempt (None: the newest) in pieces; NotFound as in ``output``."""
        if attempt is None:
            attempt = next(reversed(self.attempts(execution_id)), 0)
        return self.output(execution_id, attempt).pieces

    def forget(self, execution_id: UUID) -> None:
        """Remove all logs of one execution; idempotent."""
        folder = self._run_folder(execution_id)
        if folder.is_dir():
            shutil.rmtree(folder)

    def forget_before(self, day: date) -> list[str]:
        """Remove the logs of all runs that were due before ``day``; the names of the days removed."""
        if not self._folder.is_dir():
            return []
        # "undated" and other folders' names sort behind every date, so they are never taken.
        old = sorted(folder.name for folder in self._folder.iterdir() if folder.name < day.isoformat())
        for name in old:
            shutil.rmtree(self._folder / name)
        return old

    def _run_folder(self, execution_id: UUID) -> Path:
        return self._folder / due_day(execution_id) / str(execution_id)


def due_day(execution_id: UUID) -> str:
    """The UTC day of the due time in the id, as 2026-12-24; ``undated`` beyond the year 9999."""
    try:
        return from_millis(execution_id.int >> 80).date().isoformat()
    except OverflowError:
        return UNDATED
