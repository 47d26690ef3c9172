"""Child processes: forked into a session of their own, and never left alone by a dead supervisor."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of the tree.

    ``body`` runs in the child and returns its exit code, or never returns. ``death_signal``
    is what the kernel sends the child when the supervisor is gone. ``keep`` are file
    descriptors that stay open in the child. ``on_terminal``: its stdout is the supervisor's.
    ``restart``: start it again when it ends unasked.
    """

    name: str
    body: Callable[[], int]
    env: Mapping[str, str]
    log: Path
    title: str = ""
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 10.0
    death_signal: signal.Signals = signal.SIGKILL
    keep: frozenset[int] = field(default_factory=frozenset)
    on_terminal: bool = False
    restart: bool = True


def execute(*command: str | Path) -> Callable[[], int]:
    """A body that becomes ``command``; its environment is the child's."""

    def body() -> int:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would hand that on
        os.execve(command[0], [str(word) for word in command], dict(os.environ))  # noqa: S606 -- no shell

    return body


def spawn(program: Program) -> int:
    """Start ``program`` and return its process id, which is its group and its session, too."""
    _flush()
    supervisor = os.getpid()
    log = os.open(program.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    # Blocked: a signal to the child before it has forgotten the supervisor's handlers would be lost in them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    pid = os.fork()
    if pid == 0:
        _live_as(program, supervisor, log)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(log)
    return pid


def end_group(pid: int, number: signal.Signals) -> bool:
    """Send ``number`` to the whole group of ``pid``; says whether anyone was there."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def die_with(supervisor: int, number: signal.Signals) -> None:
    """Ask the kernel for ``number`` when the supervisor ends (Linux; elsewhere see leftovers.py)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(1)


def _live_as(program: Program, supervisor: int, log: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        _forget_signals()
        die_with(supervisor, program.death_signal)
        _arrange_descriptors(program, log)
        os.environ.clear()
        os.environ.update(program.env)
        show_title(program.title)
        code = program.body()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201 -- stderr is the process's log
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)


def _arrange_descriptors(program: Program, log: int) -> None:
    """Nothing of the supervisor's stays open: neither its lock nor another process's socket."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 2)
    if not program.on_terminal:
        os.dup2(log, 1)
    first = 3
    for kept in sorted(program.keep):
        os.set_inheritable(kept, True)
        os.closerange(first, kept)
        first = kept + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115


def show_title(title: str) -> None:
    """What ``ps`` shows: the command that the process stands for, so that people find it."""
    if title:
        import setproctitle

        setproctitle.setproctitle(title)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
