"""Moving the logs of ended attempts from this worker's disk into the archive, in the background.

    3.ended is there ─▶ archived ─▶ the files are removed, and what Redis has of it
                  └ the archive does not answer: tried again, also by whoever finds them here later

A run does not wait for it. Until its log is in the archive it is read from the disk, or in part from Redis.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from uuid import UUID

from containers.logs import LogStore
from executions.log_archive import ArchiveUnavailable, LogArchive
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import NotFound

logger = logging.getLogger(__name__)

RETRY_S = 30.0
LOOK_S = 300.0  # how often what others left is looked for
LEFT_S = 120.0  # what ended here longer ago was left by a worker that died, or whose archive was away
CLOSE_WITHIN_S = 2.0

Attempt = tuple[UUID, int]


class LogKeeper:
    """``kept`` is told of each attempt whose log is in the archive, with the bytes of its output; not of one
    whose log is empty."""

    def __init__(self, logs: LogStore, archive: LogArchive, kept: Callable[[Attempt, int], None]) -> None:
        self._logs = logs
        self._archive = archive
        self._kept = kept
        self._waiting: dict[Attempt, float] = {}  # and when it is to be tried
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._look_at = monotonic()
        self._thread = threading.Thread(target=self._run, name="log-keeper", daemon=True)

    def start(self) -> LogKeeper:
        self._thread.start()
        return self

    def put(self, attempt: Attempt) -> None:
        """An attempt has ended; its output is whole, or is not going to be."""
        with self._lock:
            self._waiting[attempt] = monotonic()
        self._wake.set()

    def close(self) -> None:
        """Archive what can be archived within seconds; the rest is found again on this disk."""
        self._closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_WITHIN_S)

    def run_once(self) -> float:
        """Archive all that is due; seconds until the next try."""
        now = monotonic()
        if now >= self._look_at and not self._closing:
            self._look_at = now + LOOK_S
            self._find_left(now)
        with self._lock:
            due = [attempt for attempt, at in self._waiting.items() if at <= now]
        for attempt in due:
            self._try(attempt)
        with self._lock:
            return max(0.0, min([*self._waiting.values(), self._look_at]) - monotonic())

    def _run(self) -> None:
        while True:
            closing = self._closing  # asked before: what was put before it was told is archived
            pause = self.run_once()
            if closing:
                return
            self._wake.wait(pause)
            self._wake.clear()

    def _find_left(self, now: float) -> None:
        try:
            left = self._logs.ended(older_than_s=LEFT_S)
        except OSError as error:
            logger.warning("logs_not_listed", extra={"error": str(error)})
            return
        with self._lock:
            for attempt in left:
                self._waiting.setdefault(attempt, now)

    def _try(self, attempt: Attempt) -> None:
        try:
            self._keep(attempt)
        except (ArchiveUnavailable, OSError) as error:
            extra = {"execution": attempt[0], "attempt": attempt[1], "error": str(error)}
            logger.warning("log_not_archived", extra=extra)
            with self._lock:
                self._waiting[attempt] = monotonic() + RETRY_S
        else:
            with self._lock:
                self._waiting.pop(attempt, None)

    def _keep(self, attempt: Attempt) -> None:
        files = self._logs.files(*attempt)
        try:
            output = self._logs.output(*attempt)
            end = files.written()
        except (NotFound, FileNotFoundError):
            return  # another worker that shares the folder was faster
        noted = files.notes.exists()
        self._archive.keep(*attempt, output)
        files.remove()
        if end or noted:
            self._kept(attempt, end)
