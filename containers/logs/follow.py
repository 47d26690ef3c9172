"""The thread that copies a container's output into a log."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from containers.logs import LogWriter

logger = logging.getLogger(__name__)

RETRY_S = 1.0
STALLED_S = 3.0


class Follower(ABC):
    """Copies until the container has ended and all of its output is in the log.

    A failure ends the copying, not the run: it is logged and kept in ``error`` for the run's message.
    What may pass (the disk is full) is tried again, for the last time when the container has ended.
    """

    def __init__(self, name: str, log: LogWriter) -> None:
        self.error = ""
        self._log = log
        self._ended = threading.Event()
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._name = name

    def start(self) -> Follower:
        self._thread.start()
        return self

    def finish(self, timeout_s: float) -> None:
        """The container has ended: copy what is left; give up when nothing comes for ``timeout_s`` s."""
        self._ended.set()
        position, waited_s = self._log.position, 0.0
        while self._thread.is_alive() and waited_s < timeout_s:
            some_s = min(STALLED_S, timeout_s - waited_s)
            self._thread.join(some_s)
            waited_s += some_s
            if self._log.position > position:
                position, waited_s = self._log.position, 0.0
            else:
                self._hasten()
        if self._thread.is_alive():
            self.error = self.error or f"its end did not arrive within {timeout_s:g} s"
            self.cancel()

    def cancel(self) -> None:
        """Stop copying now; what is in the log stays, and another follower can go on from there."""
        self._cancelled.set()
        self._ended.set()
        self._interrupt()
        self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            ended = self._ended.is_set()
            try:
                self._copy()
            except OSError as error:
                self._fail(error)
                if ended:
                    return
                self._ended.wait(RETRY_S)
            except Exception as error:
                self._fail(error)
                return
            else:
                if not self._cancelled.is_set():  # else its end is missing
                    self.error = ""
                return

    def _fail(self, error: Exception) -> None:
        told = f"{type(error).__name__}: {error}"
        if told != self.error:
            logger.warning("log_follow_failed", extra={"container": self._name, "error": told})
        self.error = told

    @abstractmethod
    def _copy(self) -> None:
        """Copy until all is copied after ``_ended``, or until ``_cancelled``."""

    def _interrupt(self) -> None:
        """Make a blocked ``_copy`` return."""
        return

    def _hasten(self) -> None:
        """The container has ended, and nothing came for STALLED_S: who waits for more may wait in vain.

        For a runtime that can read the rest another way. Called by another thread, maybe several times.
        """
        return
