"""Whether this process works: its loops say so, and a file's age says it to whoever looks (docs/adr/0031).

    a loop ── expect(name, within) ─▶ deadlines ── none has passed,  ──▶ the file is touched, once a second
    a call that was answered ── progress() ─▶      nobody stands still

A process that is stopped, one whose interpreter hangs and one with a loop that is late touch nothing. A loop
is late where it is not heard of in time, and, long before, where its thread stands on one spot. Waiting in
the client of PostgreSQL, Redis or the broker is no standing still: each call that waits for one is given up
within less time than its loop has. What is late stands in the file, for whoever reads it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
STILL_S = 8.0
"""So long a loop may stand on one spot outside of a client (PUNCTUAL_ALIVE_WITHIN)."""
WITHIN_S = 30.0
"""For a loop that waits for Redis and the broker: connecting and an answer take 15 s at most."""
DATABASE_WITHIN_S = 300.0
"""For one that waits for PostgreSQL: a statement may take long."""
CLIENTS = frozenset({"psycopg", "psycopg_binary", "redis", "amqp", "kombu"})

Spot = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Loop:
    """``still_since``: since when its thread has been seen on ``spot``; in the future while it pauses."""

    thread: int
    deadline: float
    still_since: float
    spot: Spot | None = None


class Pulse:
    """The deadlines of a process' loops. Everything may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: dict[str, _Loop] = {}
        self._here = threading.local()

    def expect(self, name: str, within_s: float, pause_s: float = 0.0) -> None:
        """This thread's loop, ``name``, is alive, and is heard of again ``within_s`` after its pause."""
        self._here.loop = name, within_s
        on_at = monotonic() + pause_s
        with self._lock:
            self._loops[name] = _Loop(threading.get_ident(), on_at + within_s, on_at)

    def progress(self) -> None:
        """This thread's loop, if it is one, has had an answer: its round takes long, and does not hang."""
        if (loop := getattr(self._here, "loop", None)) is not None:
            self.expect(*loop)

    def excuse(self, name: str) -> None:
        """The loop has ended, or waits for what may take any time."""
        with self._lock:
            self._loops.pop(name, None)
        self._here.loop = None

    def watch(self, unseen_s: float = 0.0) -> None:
        """Where each loop's thread is. ``unseen_s``: for so long nothing of this process ran: a stopped or
        starved process has no loop to blame."""
        now, frames = monotonic(), sys._current_frames()
        with self._lock:
            for loop in self._loops.values():
                spot = _spot(frames.get(loop.thread))
                if spot is None or spot != loop.spot:
                    loop.still_since = max(loop.still_since, now)
                else:
                    loop.still_since += unseen_s
                loop.spot = spot
                loop.deadline += unseen_s

    def late(self, still_s: float = STILL_S) -> list[str]:
        """The loops that should have been heard of, or that ``watch`` has seen on one spot for so long."""
        now = monotonic()
        with self._lock:
            return sorted(
                name
                for name, loop in self._loops.items()
                if loop.deadline < now or (loop.spot is not None and now - loop.still_since > still_s)
            )


def _spot(frame: FrameType | None) -> Spot | None:
    """Where a thread is, to the instruction of each function; None: in a client, which has its own limits.

    In a client is whose innermost function, but for those of Python's own library, is the client's.
    """
    spot, inner = [], frame
    while inner is not None and _package(inner) in sys.stdlib_module_names:
        inner = inner.f_back
    if inner is not None and _package(inner) in CLIENTS:
        return None
    while frame is not None:
        spot.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(spot)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


PULSE = Pulse()


class PulseFile:
    """Keeps the file at ``path`` young while no loop is late, in a thread. Without a path: nothing.

    While one is late the file is as old as can be: whoever looks need not wait for it to age.
    """

    def __init__(self, path: Path | None, still_s: float = STILL_S, pulse: Pulse = PULSE) -> None:
        self._path = path
        self._still_s = still_s
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
        looked_at = monotonic()
        while not never.wait(PERIOD_S):
            before, looked_at = looked_at, monotonic()
            self._pulse.watch(max(0.0, looked_at - before - 2 * PERIOD_S))
            try:
                self._look(path)
            except OSError as error:
                logger.warning("pulse_not_written", extra={"file": path, "error": error})

    def _look(self, path: Path) -> None:
        late = self._pulse.late(self._still_s)
        if late != self._late:
            log = logger.error if late else logger.info
            log("loops_late", extra={"loops": late})
            path.write_text("".join(f"{name} is not heard of\n" for name in late), encoding="utf-8")
            os.utime(path, (0, 0))
            self._late = late
        if not late:
            path.touch()
