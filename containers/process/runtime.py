"""Starting, finding and forgetting runs as local processes."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from containers.capacity import Capacity, host_capacity
from containers.honouring import TOO_LONG, Wish, refuse
from containers.launching import Launching
from containers.outcome import Reason
from containers.process.cgroups import Group, Groups, Limits, find_groups
from containers.process.container import MARK, ProcessContainer
from containers.process.folder import RunFolder, claim, existing, left_behind, raised
from containers.runtime import LaunchFailed, RuntimeUnavailable
from containers.spec import LABEL_NAMESPACE, ContainerSpec
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.folders import make_private_folder
from scheduler_project.kernel.texts import shown

LACKING = (
    Wish.USER,
    Wish.VOLUMES,
    Wish.NETWORK,
    Wish.GPUS,
    Wish.EPHEMERAL,
    Wish.SERVICE_ACCOUNT,
    Wish.POD_TEMPLATE,
)
SHELL = "/bin/sh"
SHIM = Path(__file__).with_name("shim.sh")
COMMAND = Path(__file__).with_name("command.sh")
# The numbers by which the scripts know them.
LOCK_DESCRIPTOR = 9
REPORT_DESCRIPTOR = 8
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROCESSES = Path("/proc/self/ns/pid")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
NO_IMAGES = (
    "this worker runs plain processes and cannot run the image {image}: "
    "start a worker with PUNCTUAL_RUNTIME=docker, or take the image out of the job or its task"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """``home``: where the folder ``runs`` is kept. ``path``: the runs' PATH. ``working_dir``: for
    specs that name none (empty: a folder of the run's own). ``groups``: where control groups can
    be made (None: address space limits only)."""

    home: Path
    path: str = DEFAULT_PATH
    working_dir: str = ""
    groups: Groups | None = field(default_factory=find_groups)


class ProcessRuntime:
    """Runs as processes of this host. What is enforced: see the package's docstring."""

    name = "process"

    def __init__(self, options: ProcessOptions) -> None:
        self._options = options
        self._runs = options.home.absolute() / "runs"

    @property
    def memory_enforcement(self) -> str:
        """``cgroup``, or ``address_space`` where no control groups can be made."""
        return "cgroup" if self._options.groups else "address_space"

    def identity(self) -> str:
        """This start of this host, the name space of its processes, and the folder of the runs."""
        seen = (_read(BOOT_ID) or platform.node(), _link(PROCESSES), str(self._runs.resolve()))
        return "process-" + hashlib.blake2b(repr(seen).encode(), digest_size=16).hexdigest()

    def capacity(self) -> Capacity:
        return host_capacity()

    def launch(self, spec: ContainerSpec, launching: Launching | None = None) -> ProcessContainer:
        launching = launching or Launching(spec.start_timeout_s)
        launching.check()
        env = self._environment(spec)
        _check_launchable(spec, env["PATH"], self._options.working_dir)
        try:
            folder, lock = claim(self._runs, spec.name, spec.labels)
            if lock is not None:
                launching.not_started()
                try:
                    self._start(folder, spec, env, lock)
                finally:
                    os.close(lock)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise RuntimeUnavailable(f"cannot start a process below {self._runs}: {error}") from error
            self.forget(spec.name)
            raise LaunchFailed(Reason.START_FAILED, TOO_LONG) from error
        return ProcessContainer(folder, self._group(spec.name))

    def attach(self, name: str, launching: Launching | None = None) -> ProcessContainer | None:
        folder = RunFolder(self._runs / name)
        if not folder.exists() or not folder.started():
            return None
        return ProcessContainer(folder, self._group(name))

    def forget(self, name: str) -> None:
        folder = RunFolder(self._runs / name)
        if folder.exists():
            ProcessContainer(folder, self._group(name)).remove()
        for path, run in left_behind(self._runs).items():
            if run == name:
                ProcessContainer(RunFolder(path), self._group(name), name).delete()

    def secret_source(self) -> None:
        """It keeps none."""

    def ping(self) -> None:
        try:
            make_private_folder(self._runs)
        except OSError as error:
            raise RuntimeUnavailable(f"the folder for runs, {self._runs}, cannot be made: {error}") from error
        if not os.access(self._runs, os.W_OK | os.X_OK):
            raise RuntimeUnavailable(f"the folder for runs, {self._runs}, is not writable: set PUNCTUAL_HOME")
        if not os.access(SHELL, os.X_OK):
            raise RuntimeUnavailable(f"there is no {SHELL}, which starts the runs: use another runtime")

    def owned(self, namespace: str = "") -> list[str]:
        """Those whose removal or making has begun and was left belong to everybody."""
        there = {
            folder.name
            for folder in existing(self._runs)
            if not namespace or folder.labels().get(LABEL_NAMESPACE) == namespace
        }
        return sorted(there | set(left_behind(self._runs).values()))

    def kill_all(self, grace_s: float) -> list[str]:
        """End every run: SIGTERM to all at once, SIGKILL after ``grace_s``; the names of those that ran.

        Their folders stay, so that a later watcher reads how they ended.
        """
        running = [
            ProcessContainer(folder, self._group(folder.name))
            for folder in existing(self._runs)
            if folder.running()
        ]
        for container in running:
            container.terminate()
        deadline = monotonic() + grace_s
        for container in running:
            container.end(max(0.0, deadline - monotonic()))
        return [container.name for container in running]

    def keep_images_within(self, limit_bytes: int) -> list[str]:
        """It keeps none."""
        return []

    def close(self) -> None:
        """Nothing is held open."""

    def _start(self, folder: RunFolder, spec: ContainerSpec, env: dict[str, str], lock: int) -> None:
        mark = {MARK: spec.name}
        group = self._create_group(spec)
        address_space = "" if group or spec.memory_bytes is None else str(spec.memory_bytes // 1024)
        groups = ":".join(map(str, group.folders)) if group else ""
        directory = spec.working_dir or self._options.working_dir or str(folder.work)
        arguments = [address_space, groups, directory, *spec.argv]
        told, report = (raised(end) for end in os.pipe())
        try:
            _spawn(SHIM, [str(folder.path)], mark, _shim_files(told, lock))
            _spawn(
                COMMAND,
                arguments,
                {"HOME": str(folder.work), **env, **mark},
                _command_files(folder.output, report),
            )
        finally:
            os.close(told)
            os.close(report)

    def _create_group(self, spec: ContainerSpec) -> Group | None:
        if self._options.groups is None:
            return None
        limits = Limits(spec.memory_bytes, spec.cpus, spec.pids_limit)
        return self._options.groups.create(spec.name, limits)

    def _group(self, name: str) -> Group | None:
        return self._options.groups.group(name) if self._options.groups else None

    def _environment(self, spec: ContainerSpec) -> dict[str, str]:
        """Only what the spec says and the least a program expects; never the worker's own."""
        return {"PATH": self._options.path, "LANG": "C.UTF-8", **spec.environment()}


def _read(path: Path) -> str:
    """What is in a file of this kernel, or empty on a system that has none."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _spawn(script: Path, arguments: list[str], env: dict[str, str], files: list[tuple[Any, ...]]) -> None:
    os.posix_spawn(
        SHELL,
        [SHELL, str(script), *arguments],
        env,
        file_actions=files,
        setsid=True,
        setsigmask=[],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


def _shim_files(told: int, lock: int) -> list[tuple[Any, ...]]:
    return [
        (os.POSIX_SPAWN_DUP2, told, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, lock, LOCK_DESCRIPTOR),
    ]


def _command_files(output: Path, report: int) -> list[tuple[Any, ...]]:
    return [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, report, REPORT_DESCRIPTOR),
    ]


def _check_launchable(spec: ContainerSpec, path: str, default_dir: str) -> None:
    """Raise LaunchFailed for what would only fail inside the shim, where nobody could say why."""
    if spec.image:
        raise LaunchFailed(Reason.START_FAILED, NO_IMAGES.format(image=shown(spec.image)))
    if not spec.argv:
        raise LaunchFailed(Reason.START_FAILED, "the process runtime has no images, so a command is needed")
    refuse(spec, "process", LACKING, "run it on a worker of docker or kubernetes, or leave these out")
    directory = spec.working_dir or default_dir
    if directory and not Path(directory).is_dir():
        raise LaunchFailed(Reason.START_FAILED, f"there is no working directory {directory!r}")
    program = spec.argv[0]
    wanted = program if "/" not in program else str(Path(directory or "/") / program)
    if shutil.which(wanted, path=path) is None:
        raise LaunchFailed(
            Reason.START_FAILED,
            f"command not found, or not executable: {shown(program)} (the worker's PUNCTUAL_PROCESS_PATH says"
            " where it is looked for)",
        )
