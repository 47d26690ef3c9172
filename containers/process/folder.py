"""The folder of one run, which is all that a new watcher needs to know of it.

    <runs>/<name>/run.json   labels; its time stamp is the start of the run
                  lock       held (flock) by the shim for as long as the attempt runs
                  pid        the shim's process id
                  group      the command's process group, whose leader is command.sh
                  output     stdout and stderr, in order
                  stopped    there since a watcher has told the run to end (at its time limit, or cancelled)
                  exit       the exit code; final as soon as the lock is free
                  work/      working folder and HOME, unless the spec says otherwise

The lock, not the process id, says whether a run is alive: the kernel lets go of it exactly when
the shim ends, and no other process can hold it by having been given the same id.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scheduler_project.kernel.clock import from_micros, utcnow
from scheduler_project.kernel.folders import make_private_folder

# Above the descriptors that the scripts use by number.
_LOWEST_DESCRIPTOR = 10
_GONE, _NEW = ".gone.", ".new-"
MADE_WITHIN_S = 60.0
"""A draft that is older was left behind: making one takes milliseconds."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def started_at(self) -> datetime:
        """Of one whose removal has begun the last change that is known."""
        try:
            return _modified(self.path / "run.json")
        except FileNotFoundError:
            return _modified(self.path)

    @property
    def finished_at(self) -> datetime:
        """When the exit code was written; where there is none, the last sign of life."""
        written = self.path / "exit"
        return _modified(written if written.exists() else self.output)

    def labels(self) -> dict[str, str]:
        """Empty where it is gone, or not all there yet."""
        try:
            found: dict[str, str] = json.loads((self.path / "run.json").read_text())["labels"]
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def exists(self) -> bool:
        return (self.path / "lock").exists()

    def started(self) -> bool:
        return (self.path / "pid").exists() or self.running()

    def running(self) -> bool:
        """Whether the shim lives; True for the launcher's own moments before it, too."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def pid(self) -> int | None:
        return _number(self.path / "pid")

    def group(self) -> int | None:
        return _number(self.path / "group")

    def note_stop(self) -> None:
        """For whoever reads how it ended, if the one who stops it cannot say why any more."""
        with suppress(FileNotFoundError):  # somebody removes it
            (self.path / "stopped").touch(mode=0o600)

    def was_stopped(self) -> bool:
        return (self.path / "stopped").exists()

    def exit_code(self) -> int | None:
        return _number(self.path / "exit")

    def take_over(self) -> int | None:
        """The lock of a claim whose launcher died before it started anything, or None."""
        descriptor = _lock(self.path / "lock")
        if descriptor is not None and self.started_earlier():
            os.close(descriptor)
            return None
        if descriptor is not None:
            os.utime(self.path / "run.json")
        return descriptor

    def started_earlier(self) -> bool:
        return (self.path / "pid").exists()

    def hide(self) -> RunFolder | None:
        """Give up the name: for everybody else the run is gone. None where it is gone already."""
        hidden = self.path.with_name(f"{_GONE}{self.name}.{secrets.token_hex(4)}")
        try:
            self.path.rename(hidden)
        except FileNotFoundError:
            return None
        return RunFolder(hidden)

    def delete(self) -> None:
        shutil.rmtree(self.path)


def claim(runs: Path, name: str, labels: Mapping[str, str]) -> tuple[RunFolder, int | None]:
    """The folder of that name and, where this call may start the run, the held lock's descriptor.

    The folder is made complete under another name and then renamed, which fails where the name
    is taken: there is one winner, and no moment in which the folder exists without its lock.
    """
    folder = RunFolder(runs / name)
    draft = RunFolder(runs / f"{_NEW}{name}-{secrets.token_hex(4)}")
    make_private_folder(draft.work)
    for file in (draft.output, draft.path / "run.json", draft.path / "lock"):
        file.touch(mode=0o600)
    (draft.path / "run.json").write_text(json.dumps({"labels": dict(labels)}))
    descriptor = _lock(draft.path / "lock")
    try:
        draft.path.rename(folder.path)
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        shutil.rmtree(draft.path)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return folder, folder.take_over()
    return folder, descriptor


def existing(runs: Path) -> list[RunFolder]:
    if not runs.is_dir():
        return []
    return [RunFolder(path) for path in sorted(runs.iterdir()) if not path.name.startswith(".")]


def left_behind(runs: Path) -> dict[Path, str]:
    """Folders whose removal, or making, was begun by somebody who died over it; the names of their runs."""
    found = {}
    for path in runs.iterdir() if runs.is_dir() else ():
        if path.name.startswith(_GONE):
            found[path] = path.name.removeprefix(_GONE).rpartition(".")[0]
        elif path.name.startswith(_NEW) and _age_s(path) > MADE_WITHIN_S:
            found[path] = path.name.removeprefix(_NEW).rpartition("-")[0]
    return found


def _age_s(path: Path) -> float:
    """Of a folder that may be renamed or removed at this moment: then it is none that was left."""
    try:
        return (utcnow() - _modified(path)).total_seconds()
    except FileNotFoundError:
        return 0.0


def _lock(path: Path) -> int | None:
    """An exclusive lock on ``path`` as a descriptor, or None where somebody else holds it."""
    descriptor = raised(os.open(path, os.O_RDONLY))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def raised(opened: int) -> int:
    """The same file under a number that the scripts do not use; ``opened`` is closed."""
    try:
        return fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    finally:
        os.close(opened)


def _number(path: Path) -> int | None:
    """The number in a file that the shim wrote, or None as long as it is not all there."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return int(text) if text.endswith("\n") else None


def _modified(path: Path) -> datetime:
    return from_micros(path.stat().st_mtime_ns // 1000)
