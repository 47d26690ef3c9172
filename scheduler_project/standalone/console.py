"""What the terminal (or a file, or a pipe) shows: plain lines, each written at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scheduler_project.kernel.clock import monotonic


class Console:
    """``lost`` is called once when nobody reads any more."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._open = True

    def say(self, line: str) -> None:
        if not self._open:
            return
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except (BrokenPipeError, OSError):
            self._open = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the last flush at exit complains
            self._lost()

    def quote(self, name: str, line: str) -> None:
        """A warning or an error from a process's log."""
        self.say(f"[{name}] {line}")

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """``doing …`` before, ``done (1.2 s)`` after; only the first where it fails."""
        begun = monotonic()
        self.say(f"{doing} …")
        yield
        self.say(f"{done} ({monotonic() - begun:.1f} s)")


def complain(line: str) -> None:
    """Why it cannot go on; on stderr."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def open_standard_streams() -> None:
    """Where the caller closed one of the descriptors 0 to 2, no file of ours must take its number."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
