"""Linux control groups: limits and a complete list of a run's processes, where we may make them.

Version 2 is one tree; version 1 has a tree for each controller. Both are handled, because a
group is only ever: folders to make, files to write, and a file that lists processes.
"""

from __future__ import annotations

import errno
import re
import time
from dataclasses import dataclass
from pathlib import Path

from scheduler_project.kernel.clock import monotonic

MOUNT = Path("/sys/fs/cgroup")
PARENT = "punctual"
V1_CONTROLLERS = ("memory", "pids", "cpu")
CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class Limits:
    memory_bytes: int | None
    cpus: float | None
    pids: int


@dataclass(frozen=True, slots=True)
class Group:
    """The folders of one run; one in version 2, one for each controller in version 1."""

    folders: tuple[Path, ...]

    def processes(self) -> set[int]:
        found: set[int] = set()
        for folder in self.folders:
            listed = folder / "cgroup.procs"
            if listed.exists():
                found.update(int(line) for line in _read(listed).split())
        return found

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for want of memory."""
        return any(
            int(count) > 0
            for folder in self.folders
            for name in ("memory.events", "memory.oom_control")
            for count in re.findall(r"^oom_kill (\d+)$", _read(folder / name), re.MULTILINE)
        )

    def remove(self) -> None:
        """Remove the (empty) folders; the kernel may need a moment to let go of ended processes."""
        for folder in self.folders:
            _remove(folder)


class Groups:
    """Makes a group for each run. Obtained from ``find_groups``."""

    def __init__(self, parents: tuple[Path, ...], version: int) -> None:
        self._parents = parents
        self._version = version

    def group(self, name: str) -> Group:
        """The group of that run, whether or not it exists."""
        return Group(tuple(parent / name for parent in self._parents))

    def create(self, name: str, limits: Limits) -> Group:
        """Make the group with its limits. Raises OSError."""
        group = self.group(name)
        for folder in group.folders:
            folder.mkdir(exist_ok=True)
        settings = _v2_settings(limits) if self._version == 2 else _v1_settings(limits)
        for file, value in settings.items():
            for folder in group.folders:
                # Swap accounting is a kernel option: where the file is missing there is nothing to limit.
                if (folder / file).exists():
                    (folder / file).write_text(value)
        return group


def find_groups(mount: Path = MOUNT) -> Groups | None:
    """Where groups for runs can be made, or None where this process may not."""
    try:
        return _find_v2(mount) if (mount / "cgroup.controllers").exists() else _find_v1(mount)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EBUSY, errno.EINVAL):
            return None
        raise


def _find_v2(mount: Path) -> Groups:
    enable = "+memory +pids +cpu"
    (mount / "cgroup.subtree_control").write_text(enable)
    parent = mount / PARENT
    parent.mkdir(exist_ok=True)
    (parent / "cgroup.subtree_control").write_text(enable)
    return Groups((parent,), 2)


def _find_v1(mount: Path) -> Groups:
    parents = tuple(mount / controller / PARENT for controller in V1_CONTROLLERS)
    for parent in parents:
        if not (parent.parent / "cgroup.procs").exists():
            raise FileNotFoundError(errno.ENOENT, "this controller is not mounted", str(parent.parent))
        parent.mkdir(exist_ok=True)
    return Groups(parents, 1)


def _v2_settings(limits: Limits) -> dict[str, str]:
    settings = {"pids.max": str(limits.pids)}
    if limits.memory_bytes is not None:
        settings |= {"memory.max": str(limits.memory_bytes), "memory.swap.max": "0"}
    if limits.cpus is not None:
        settings["cpu.max"] = f"{int(limits.cpus * CPU_PERIOD_US)} {CPU_PERIOD_US}"
    return settings


def _v1_settings(limits: Limits) -> dict[str, str]:
    settings = {"pids.max": str(limits.pids)}
    if limits.memory_bytes is not None:
        size = str(limits.memory_bytes)
        settings |= {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size}
    if limits.cpus is not None:
        settings["cpu.cfs_period_us"] = str(CPU_PERIOD_US)
        settings["cpu.cfs_quota_us"] = str(int(limits.cpus * CPU_PERIOD_US))
    return settings


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""  # not every version and controller has every file
    except OSError as error:
        if error.errno == errno.ENODEV:
            return ""  # the group has been removed meanwhile
        raise


def _remove(folder: Path) -> None:
    give_up = monotonic() + 1.0
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or monotonic() >= give_up:
                raise
            time.sleep(0.005)
        else:
            return
