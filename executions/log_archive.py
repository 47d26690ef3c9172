"""Where the output of attempts that have ended is kept: Django's storage ``logs``, compressed.

    2026-12-24/<execution>/3.log.gz      what is shown of the output; zcat reads it
                           3.times.gz    when each part came, by its place in that (containers/logs/stamps.py)

The times are written first: where there is a log, its times are there; none where nothing came. Writing the
same attempt again replaces it by the same. There is no database here: workers write, web reads, maintenance
removes.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO, Any, Protocol, cast
from uuid import UUID

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, storages

from containers.logs import due_day
from containers.logs.output import CHUNK, Output
from containers.logs.stamps import Stamp, packed, unpacked
from scheduler_project.kernel.errors import NotFound, RetryableError

LEVEL = 6
IN_MEMORY = 4 * 1024 * 1024
LOG, TIMES = ".log.gz", ".times.gz"


class ArchiveUnavailable(RetryableError):
    """The storage of the logs does not answer."""


class LogStorage(Protocol):
    """What is asked of a storage of Django, and more than they all can."""

    def open(self, name: str, mode: str = "rb") -> File[bytes]: ...

    def save(self, name: str, content: File[bytes]) -> str: ...

    def listdir(self, path: str) -> tuple[list[str], list[str]]: ...

    def remove_folder(self, name: str) -> None:
        """Remove all that lies below ``name``; idempotent."""
        ...


class LogFolder(FileSystemStorage):
    """A folder; nobody ever sees half a file in it."""

    def __init__(self, location: str) -> None:
        super().__init__(
            location, file_permissions_mode=0o600, directory_permissions_mode=0o700, allow_overwrite=True
        )

    def save(self, name: Any, content: Any, max_length: int | None = None) -> str:
        super().save(f"{name}.part", content, max_length)
        Path(self.path(f"{name}.part")).replace(self.path(name))
        return str(name)

    def remove_folder(self, name: str) -> None:
        folder = Path(self.path(name))
        if folder.is_dir():
            shutil.rmtree(folder)


class LogArchive:
    """All that is kept. Every method may raise ArchiveUnavailable."""

    def __init__(self, storage: LogStorage) -> None:
        self._storage = storage

    def keep(self, execution_id: UUID, attempt: int, output: Output) -> None:
        name = _name(execution_id, attempt)
        with _reachable():
            if stamps := output.stamps():
                self._save(name + TIMES, [packed(stamps)])
            self._save(name + LOG, output.pieces)

    def output(self, execution_id: UUID, attempt: int) -> Output:
        """What is kept of an attempt's output. Raises NotFound, at once, where there is none."""
        name = _name(execution_id, attempt)
        with _reachable(f"there is no log of execution {execution_id}, attempt {attempt} in the archive"):
            return Output(_Pieces(self._storage.open(name + LOG)), lambda: self._stamps(name))

    def attempts(self, execution_id: UUID) -> list[int]:
        with _reachable():
            names = self._names(f"{due_day(execution_id)}/{execution_id}")
        stems = (name.removesuffix(LOG) for name in names if name.endswith(LOG))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def forget_before(self, day: date) -> list[str]:
        """Remove what was due before ``day``; the names of the days removed."""
        with _reachable():
            try:
                folders, _ = self._storage.listdir("")
            except FileNotFoundError:
                return []
            old = sorted(name for name in folders if name < day.isoformat())  # "undated" sorts behind
            for name in old:
                self._storage.remove_folder(name)
        return old

    def _names(self, folder: str) -> list[str]:
        try:
            return self._storage.listdir(folder)[1]
        except FileNotFoundError:
            return []

    def _stamps(self, name: str) -> list[Stamp]:
        try:
            with _reachable(f"there are no times of {name}"), self._storage.open(name + TIMES) as file:
                return unpacked(gzip.decompress(file.read()))
        except NotFound:
            return []  # nothing was said

    def _save(self, name: str, pieces: Iterable[bytes]) -> None:
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as spool:
            with gzip.GzipFile("", "wb", LEVEL, cast(IO[bytes], spool), mtime=0) as packing:
                for piece in pieces:
                    packing.write(piece)
            spool.seek(0)
            self._storage.save(name, File(cast(IO[bytes], spool), name))


def log_archive() -> LogArchive:
    """The one that the settings name."""
    return LogArchive(cast(LogStorage, storages["logs"]))


def _name(execution_id: UUID, attempt: int) -> str:
    return f"{due_day(execution_id)}/{execution_id}/{attempt}"


@contextmanager
def _reachable(missing: str = "") -> Iterator[None]:
    """FileNotFoundError becomes NotFound where ``missing`` says of what; all else is the storage's fault."""
    try:
        yield
    except FileNotFoundError as error:
        if missing:
            raise NotFound(missing) from None
        raise ArchiveUnavailable(f"the archive of logs: {error} (PUNCTUAL_LOG_ARCHIVE)") from error
    except Exception as error:  # each storage has its own
        told = f"{type(error).__name__}: {error}"
        raise ArchiveUnavailable(f"the archive of logs: {told} (PUNCTUAL_LOG_ARCHIVE)") from error


class _Pieces(Iterator[bytes]):
    """The content of a compressed file, which is closed at its end, or when nobody asks for it any more."""

    def __init__(self, file: File[bytes]) -> None:
        self._text = gzip.GzipFile(fileobj=cast(IO[bytes], file), mode="rb")
        self.close = weakref.finalize(self, file.close)

    def __next__(self) -> bytes:
        if not self.close.alive:
            raise StopIteration
        with _reachable():
            piece = self._text.read(CHUNK)
        if not piece:
            self.close()
            raise StopIteration
        return piece
