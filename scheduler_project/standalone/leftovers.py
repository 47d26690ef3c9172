"""What a killed supervisor may have left behind, and its end.

Every child is put on record (process id and time of birth, so that a process id that was
given to somebody else is never touched). A new start ends whatever of the last record
still lives before it uses the data: servers by the signal that makes them save, all
others at once, for every one of them may be killed at any time.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler_project.home import write_private
from scheduler_project.kernel.clock import monotonic
from scheduler_project.standalone.children import end_group

RECORD = "processes.json"
PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class Process:
    name: str
    pid: int
    born: str
    death_signal: int

    @property
    def alive(self) -> bool:
        return birth(self.pid) == self.born


class Record:
    """The children of the supervisor that holds ``home``'s lock, on disk."""

    def __init__(self, home: Path) -> None:
        self._path = home / RECORD
        self._processes: dict[str, Process] = {}

    def add(self, name: str, pid: int, death_signal: int) -> None:
        born = birth(pid)
        if born is not None:
            self._processes[name] = Process(name, pid, born, death_signal)
            self._write()

    def drop(self, name: str) -> None:
        if self._processes.pop(name, None):
            self._write()

    def left(self) -> list[Process]:
        """What the record of the last supervisor names and what still lives."""
        try:
            items = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        return [process for process in (Process(**item) for item in items) if process.alive]

    def _write(self) -> None:
        write_private(self._path, json.dumps([asdict(p) for p in self._processes.values()], indent=1) + "\n")


def end_leftovers(processes: Iterable[Process], say: Callable[[str], None]) -> None:
    """End all of ``processes``; returns when they are gone."""
    left = list(processes)
    for process in left:
        say(f"ending {process.name} (process {process.pid}), left by a start that was killed")
        end_group(process.pid, signal.Signals(process.death_signal))
    if not wait_gone(left, PATIENCE_S):
        for process in left:
            if process.alive:
                end_group(process.pid, signal.SIGKILL)
        wait_gone(left, 5.0)


def wait_gone(processes: list[Process], timeout_s: float) -> bool:
    until = monotonic() + timeout_s
    while any(process.alive for process in processes):
        if monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def birth(pid: int) -> str | None:
    """A text that tells this process from any other that had or will have its id; None: there is none."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return _birth_by_ps(pid)
    try:
        fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def _birth_by_ps(pid: int) -> str | None:
    found = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


def folder_of(pid: int) -> Path | None:
    """The working directory of a process, where that can be known (Linux)."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None
