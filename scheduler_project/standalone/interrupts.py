"""Signals to the supervisor, as two plain questions: stop? and: stop at once?"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from types import FrameType

from scheduler_project.kernel.clock import monotonic

SAME_REQUEST_S = 0.5
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hold() -> None:
    """Keep requests to stop until somebody listens, also over an exec.

    While Python and the settings are being read nobody can heed them, and Python's own answer to
    Ctrl-C would be a traceback.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)


class Interrupts:
    """Counts requests to stop, and wakes a sleeper when any signal arrives.

    A request that follows within half a second is the same one: ``make`` passes SIGTERM on
    to a process whose group has just got it from the terminal, too.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: float | None = None
        self._again = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    @property
    def stop(self) -> bool:
        return self._first is not None

    @property
    def at_once(self) -> bool:
        return self._again

    def request(self) -> None:
        """Ask for the end, as a signal does."""
        now = self._clock()
        if self._first is None:
            self._first = now
        elif now - self._first >= SAME_REQUEST_S:
            self._again = True

    def listen(self) -> None:
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        for number in STOPPING:
            signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def sleep(self, seconds: float) -> None:
        """Until a signal arrives, at most ``seconds``."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            os.read(self._reader, 4096)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.request()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wake-up itself is all that a dead child's signal is for."""
