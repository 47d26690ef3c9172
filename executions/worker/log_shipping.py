"""The thread that ships the live logs of a worker to Redis, where web finds them (live_logs.py).

It reads what the writers have stored, four times a second. What it cannot do harms no run: the
log is on this worker's disk in any case, and Redis gets the rest when it answers again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from containers.logs import LogWriter
from containers.logs.files import HEAD
from containers.logs.stamps import RECORD_BYTES, Stamp, unpacked
from executions.live_logs import KEPT, LiveLogs
from executions.store import StoreUnavailable
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

EVERY_S = 0.25
CLOSE_WITHIN_S = 1.0
REFRESHED_S = KEPT.total_seconds() / 4


class LogShipper:
    """``live`` None: nothing is shipped, as where all share one folder."""

    def __init__(self, live: LiveLogs | None) -> None:
        self._live = live
        self._followed: dict[tuple[UUID, int], _Followed] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-shipper", daemon=True)
        self._away = False

    def start(self) -> LogShipper:
        if self._live is not None:
            self._thread.start()
        return self

    @contextmanager
    def following(self, attempt: tuple[UUID, int], writer: LogWriter) -> Iterator[None]:
        """Ship what ``writer`` stores; what it stored last is shipped before this ends."""
        if self._live is None:
            yield
            return
        followed = _Followed(self._live, attempt, writer)
        with self._lock:
            self._followed[attempt] = followed
        try:
            yield
        finally:
            with self._lock:
                self._followed.pop(attempt, None)
            self._ship(followed)

    def forget(self, attempt: tuple[UUID, int], end: int) -> None:
        """The attempt's output is kept elsewhere."""
        if self._live is None:
            return
        try:
            self._live.forget(attempt, end)
        except StoreUnavailable:
            logger.info("live_log_expires", extra={"execution": attempt[0], "attempt": attempt[1]})

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_WITHIN_S)

    def _run(self) -> None:
        while not self._closed.wait(EVERY_S):
            with self._lock:
                followed = list(self._followed.values())
            for each in followed:
                self._ship(each)

    def _ship(self, followed: _Followed) -> None:
        try:
            followed.ship()
        except (StoreUnavailable, OSError) as error:
            if not self._away:
                logger.warning("live_logs_wait", extra={"error": str(error)})
            self._away = True
        else:
            self._away = False


class _Followed:
    """One attempt, and how much of it has been shipped. For one thread at a time."""

    def __init__(self, live: LiveLogs, attempt: tuple[UUID, int], writer: LogWriter) -> None:
        self._live = live
        self._attempt = attempt
        self._writer = writer
        self._shipped = 0
        self._notes = 0
        self._part, self._read = HEAD, 0  # how far the times have been read
        self._refreshed = monotonic()
        self._lock = threading.Lock()

    def ship(self) -> None:
        with self._lock:
            self._ship_notes()
            while self._ship_next():
                pass
            if monotonic() - self._refreshed > REFRESHED_S:
                self._live.refresh(self._attempt, self._shipped)
                self._refreshed = monotonic()

    def _ship_next(self) -> bool:
        stored, before = self._writer.stored, self._shipped
        begin, end = self._live.next_part(before, stored)
        data = self._writer.files.read(begin, end)
        if not data:
            return False
        part, read, stamps = self._fresh_stamps(begin + len(data))
        self._live.ship(self._attempt, begin, data, stamps)
        self._live.drop(self._attempt, before, begin + len(data))
        self._shipped = begin + len(data)
        self._part, self._read = part, read
        return begin + len(data) < stored

    def _fresh_stamps(self, end: int) -> tuple[int, int, list[Stamp]]:
        """What has been added to the files of times up to that of the byte before ``end``."""
        files, part, read = self._writer.files, self._part, self._read
        last = files.place(end - 1)[0]
        found = b""
        for number in range(max(part, last - 1), last + 1):
            skip = read if number == part else 0
            content = _content(files.times(number), skip)
            found += content
            part, read = number, skip + len(content)
        return part, read, unpacked(found)

    def _ship_notes(self) -> None:
        notes = self._writer.files.notes
        size = notes.stat().st_size if notes.exists() else 0
        if size > self._notes:
            self._live.note(self._attempt, notes.read_bytes())
            self._notes = size


def _content(path: Path, skip: int) -> bytes:
    """The whole records of a file of times, from byte ``skip`` on."""
    try:
        with path.open("rb") as file:
            file.seek(skip)
            content = file.read()
    except FileNotFoundError:
        return b""
    return content[: len(content) // RECORD_BYTES * RECORD_BYTES]
