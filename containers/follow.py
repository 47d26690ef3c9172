"""The thread that copies a container's output into a log."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from containers.logs import LogWriter

logger = logging.getLogger(__name__)


class Follower(ABC):
    """Copies until the container has ended and all of its output is in the log.

    A failure (the disk is full, the engine refuses) ends the copying, not the run: it is
    logged and kept in ``error`` for the run's message.
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
        position = -1
        while self._thread.is_alive() and self._log.position > position:
            position = self._log.position
            self._thread.join(timeout_s)
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
        try:
            self._copy()
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            logger.warning("log_follow_failed", extra={"container": self._name, "error": self.error})

    @abstractmethod
    def _copy(self) -> None:
        """Copy until all is copied after ``_ended``, or until ``_cancelled``."""

    def _interrupt(self) -> None:
        """Make a blocked ``_copy`` return."""
        return
