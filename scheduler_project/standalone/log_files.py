"""The logs of the child processes: kept small, and their warnings repeated on the terminal."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

KEPT_AT_START_BYTES = 1 << 20
LIMIT_BYTES = 16 << 20
_LOUD = re.compile(
    r"^(?:\S+Z (?:WARNING(?! django\.request)|ERROR|CRITICAL) "  # scheduler_project.logs; no 404 is ours
    r"|\[[^\]]*: ?(?:WARNING|ERROR|CRITICAL)/)"  # Celery's own
)


class LogFile:
    """One process's log. ``loud_lines`` gives what is new and worth a look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rotate(path, KEPT_AT_START_BYTES)
        self._position = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def loud_lines(self) -> list[str]:
        """New warnings and errors since the last call, one line each, without line ends."""
        return [line for line in self._new_lines() if _LOUD.match(line)]

    def _new_lines(self) -> list[str]:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return []
        if size < self._position:
            self._position = 0
        if size == self._position:
            return []
        with self.path.open("rb") as file:
            file.seek(self._position)
            read = file.read(1 << 20)
        self._position += len(read)
        *lines, self._rest = (self._rest + read).split(b"\n")
        if self._position > LIMIT_BYTES and self._position == size:
            rotate(self.path, LIMIT_BYTES)
            self._position = 0
        return [line.decode(errors="replace") for line in lines]


class LogFiles:
    """The logs of one start, in ``folder``. ``say`` gets a process's name and a line."""

    def __init__(self, folder: Path, say: Callable[[str, str], None]) -> None:
        self.folder = folder
        self._say = say
        self._files: dict[Path, tuple[str, LogFile]] = {}
        folder.mkdir(mode=0o700, exist_ok=True)

    def follow(self, path: Path, name: str) -> None:
        """Repeat the warnings and errors that are logged to ``path`` from now on."""
        self._files[path] = (name, LogFile(path))

    def repeat_loud_lines(self) -> None:
        for name, file in self._files.values():
            for line in file.loud_lines():
                self._say(name, line)

    def last_line(self, path: Path) -> str:
        """The last line that is not empty, or nothing."""
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            lines = file.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def rotate(path: Path, limit_bytes: int) -> None:
    """Where ``path`` is larger than ``limit_bytes``: its content goes to ``<path>.1``, and it begins anew.

    Its writers append, so that they go on at the new beginning; a line that is written
    between the copy and the cut is lost.
    """
    if path.exists() and path.stat().st_size > limit_bytes:
        shutil.copyfile(path, path.with_name(path.name + ".1"))
        os.truncate(path, 0)
