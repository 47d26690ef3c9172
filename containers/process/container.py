"""One run as a local process tree: waiting for it, ending it, reading its output."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.outcome import Exit
from containers.process.cgroups import Group
from containers.process.folder import RunFolder
from containers.runtime import RuntimeUnavailable
from containers.waiting import Check, checked_wait, unchecked
from scheduler_project.kernel.clock import monotonic, utcnow

MARK = "PUNCTUAL_RUN"
KILL_WITHIN_S = 10.0
READ_SIZE = 256 * 1024
TAIL_EVERY_S = 0.2

Reader = Callable[[int], bytes]


class ProcessContainer:
    """A run whose shim holds the lock of its folder; see shim.sh, command.sh and folder.py."""

    def __init__(self, folder: RunFolder, group: Group | None, name: str = "") -> None:
        self._folder = folder
        self._name = name or folder.name
        self._group = group
        # Read once: both outlive the folder, which another worker may remove.
        self._started_at = folder.started_at

    @property
    def name(self) -> str:
        return self._name

    @property
    def started_at(self) -> datetime:
        return self._started_at

    def now(self) -> datetime:
        return utcnow()

    def wait(self, timeout_s: float) -> Exit | None:
        if not self._wait_for_shim(timeout_s):
            return None
        self._end_stragglers()
        if not self._folder.exists():
            return Exit(None, utcnow())
        oom = None if self._group is None else self._group.ran_out_of_memory()
        code, finished_at = self._folder.exit_code(), self._folder.finished_at
        return Exit(code, finished_at, oom, stopped=self._folder.was_stopped() and not oom)

    def terminate(self) -> None:
        """Send SIGTERM to the command's whole group, and do not wait."""
        self._signal_group(signal.SIGTERM)

    def stop(self, grace_s: float, check: Check = unchecked) -> None:
        if self._folder.running():
            self._folder.note_stop()
        self.end(grace_s, check)

    def end(self, grace_s: float, check: Check = unchecked) -> None:
        """As ``stop`` does it, and leave no word that it was a watcher who did."""
        self.terminate()
        if not checked_wait(self._wait_for_shim, grace_s, check):
            self._signal_group(signal.SIGKILL)  # which the shim tells as exit code 137
            if not self._wait_for_shim(KILL_WITHIN_S):
                self._kill_shim()
        self._end_stragglers()

    def follow(self, log: LogWriter) -> Follower:
        return _FileFollower(self._folder, log).start()

    def remove(self) -> None:
        # Hidden first: whoever watches it sees a run that has vanished, not one that failed.
        hidden = self._folder.hide()
        if hidden is not None:
            ProcessContainer(hidden, self._group, self._name).delete()

    def delete(self) -> None:
        """Kill what still runs, and delete all that is left of it."""
        self.end(0)
        if self._group is not None:
            self._group.remove()
        self._folder.delete()

    def _wait_for_shim(self, timeout_s: float) -> bool:
        """Whether it has ended within that time."""
        deadline = monotonic() + timeout_s
        while self._folder.running():
            left = deadline - monotonic()
            if left <= 0:
                return False
            _sleep_while_alive(self._folder.pid(), left)
        _reap(self._folder.pid())
        _reap(self._folder.group())
        return True

    def _signal_group(self, number: signal.Signals) -> None:
        # Only while the lock is held: the group's number may belong to others afterwards.
        group = self._wait_for_group()
        if group is not None and self._folder.running():
            with contextlib.suppress(ProcessLookupError):  # it ended this very moment
                os.killpg(group, number)

    def _wait_for_group(self) -> int | None:
        """The command's group; the shim writes it within milliseconds of its start."""
        deadline = monotonic() + 2.0
        while (group := self._folder.group()) is None and self._folder.running() and monotonic() < deadline:
            threading.Event().wait(0.002)
        return group

    def _kill_shim(self) -> None:
        pid = self._folder.pid()
        if pid is not None and self._folder.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_stragglers(self) -> None:
        """SIGKILL for whatever is left of the run, wherever it went; returns when there is nothing."""
        deadline = monotonic() + KILL_WITHIN_S
        while left := self._processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if monotonic() > deadline:
                raise RuntimeUnavailable(f"processes {sorted(left)} of {self.name} do not end when killed")
            threading.Event().wait(0.005)

    def _processes(self) -> set[int]:
        if self._group is not None:
            return self._group.processes()
        return _marked_processes(self.name)


def _sleep_while_alive(pid: int | None, timeout_s: float) -> None:
    """Sleep until the process ends or the time is up; where the kernel cannot tell us, nap."""
    opened = _open_process(pid)
    if opened is None:
        # Either it is about to write its id, or this system has no process descriptors.
        threading.Event().wait(min(timeout_s, 0.002 if pid is None else 0.02))
        return
    try:
        poller = select.poll()
        poller.register(opened, select.POLLIN)
        poller.poll(max(1, int(timeout_s * 1000)))
    finally:
        os.close(opened)


def _open_process(pid: int | None) -> int | None:
    if pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _reap(pid: int | None) -> None:
    """Let go of a child of this process that has ended; another worker's is reaped there, or by init."""
    if pid is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _marked_processes(name: str) -> set[int]:
    """Living processes that carry the run's mark in the environment they were started with."""
    mark = f"{MARK}={name}".encode()
    return {
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if mark in _environment(folder).split(b"\0")
    }


def _environment(folder: Path) -> bytes:
    try:
        return (folder / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""  # ended meanwhile, or somebody else's and so none of ours


class _FileFollower(Follower):
    def __init__(self, folder: RunFolder, log: LogWriter) -> None:
        super().__init__(folder.name, log)
        self._path = folder.output

    def _copy(self) -> None:
        with self._path.open("rb", buffering=0) as output:
            output.seek(self._log.position)
            while not self._cancelled.is_set():
                # Asked before reading: what was written before the end is then surely read.
                ended = self._ended.is_set()
                if not self._copy_available(output.read) and ended:
                    return
                if not ended:
                    self._ended.wait(TAIL_EVERY_S)

    def _copy_available(self, read: Reader) -> bool:
        copied = False
        while not self._cancelled.is_set() and (piece := read(READ_SIZE)):
            self._log.write(piece)
            copied = True
        return copied
