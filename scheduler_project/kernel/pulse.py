"""Whether this process works: its loops say so, and a file's age says it to whoever looks (docs/adr/0031).

    a loop ── expect(name, within) ─▶ deadlines ── none has passed? ──▶ the file is touched, once a second
    a call that was answered ── progress() ─▶ the deadline of its thread's loop

A process that is stopped, one whose interpreter hangs and one with a loop that is not heard of in time touch
nothing. A part that is away makes nobody late: each call that waits for one is given up within less time than
its loop has, and the loop is heard of. What is late stands in the file, for whoever reads it.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
WITHIN_S = 30.0
"""For a loop that waits for Redis and the broker: connecting and an answer take 15 s at most."""
DATABASE_WITHIN_S = 300.0
"""For one that waits for PostgreSQL: a statement may take long."""


class Pulse:
    """The deadlines of a process' loops. Everything may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[str, float] = {}
        self._here = threading.local()

    def expect(self, name: str, within_s: float, pause_s: float = 0.0) -> None:
        """This thread's loop, ``name``, is alive, and is heard of again ``within_s`` after its pause."""
        self._here.loop = name, within_s
        with self._lock:
            self._deadlines[name] = monotonic() + pause_s + within_s

    def progress(self) -> None:
        """This thread's loop, if it is one, has had an answer: its round takes long, and does not hang."""
        if (loop := getattr(self._here, "loop", None)) is not None:
            self.expect(*loop)

    def excuse(self, name: str) -> None:
        """The loop has ended, or waits for what may take any time."""
        with self._lock:
            self._deadlines.pop(name, None)
        self._here.loop = None

    def late(self) -> list[str]:
        """The loops that should have been heard of."""
        now = monotonic()
        with self._lock:
            return sorted(name for name, deadline in self._deadlines.items() if deadline < now)


PULSE = Pulse()


class PulseFile:
    """Keeps the file at ``path`` young while no loop is late, in a thread. Without a path: nothing."""

    def __init__(self, path: Path | None, pulse: Pulse = PULSE) -> None:
        self._path = path
        self._pulse = pulse
        self._late: list[str] = []

    def start(self) -> None:
        """InvalidValue where the file cannot be written."""
        if self._path is None:
            return
        try:
            self._path.write_text("", encoding="utf-8")
        except OSError as error:
            raise InvalidValue(
                f"PUNCTUAL_ALIVE_FILE: {str(self._path)!r} cannot be written ({error})"
            ) from None
        threading.Thread(target=self._keep, args=(self._path,), name="pulse", daemon=True).start()

    def _keep(self, path: Path) -> None:
        """Until the process ends."""
        never = threading.Event()
        while not never.wait(PERIOD_S):
            try:
                self._look(path)
            except OSError as error:
                logger.warning("pulse_not_written", extra={"file": path, "error": error})

    def _look(self, path: Path) -> None:
        late = self._pulse.late()
        if late != self._late:
            log = logger.error if late else logger.info
            log("loops_late", extra={"loops": late})
            touched = path.stat()
            path.write_text("".join(f"{name} is not heard of\n" for name in late), encoding="utf-8")
            os.utime(path, (touched.st_atime, touched.st_mtime))
            self._late = late
        if not late:
            path.touch()
