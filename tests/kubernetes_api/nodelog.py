"""A container's log as a node keeps it, in the format of the Container Runtime Interface.

``<time stamp> stdout F <line>``; a line beyond 16 KiB, and what has no line end, is in parts tagged
``P``. Reading it is what the kubelet does for ``kubectl logs``: a time stamp before each whole line.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scheduler_project.kernel.clock import monotonic
from tests.kubernetes_api.clock import cluster_now

PART = 16 * 1024
POLL_S = 0.01


@dataclass(frozen=True)
class Asked:
    """What a reader wants of a log."""

    follow: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None


class NodeLog:
    """Written by ``copy``, in a thread of the kubelet; read by any number of requests.

    A file that is found to have grown to ``most`` bytes, at a look every ``look_s`` seconds, is followed
    by another. Readers begin with the newest; who follows goes from one to the next.
    """

    def __init__(self, path: Path, most: int, look_s: float) -> None:
        self._path = path
        self._most = most
        self._look_s = look_s
        self._look_at = monotonic() + look_s
        self._newest = 0
        self._rest = b""
        self.complete = threading.Event()
        self._file(0).touch()

    def copy(self, output: Path, ended: threading.Event) -> None:
        """Copy what is written to ``output``, until it is ``ended`` and all is copied."""
        with output.open("rb") as source:
            while True:
                last = ended.is_set()
                while piece := source.read(1 << 20):
                    self._append(self._entries(piece))
                if last:
                    break
                ended.wait(POLL_S)
            if self._rest:
                self._append(_entry(b"P", self._rest))
        self.complete.set()

    def _append(self, entries: bytes) -> None:
        if monotonic() >= self._look_at:
            self._look_at = monotonic() + self._look_s
            if self._file(self._newest).stat().st_size >= self._most:
                self._file(self._newest + 1).touch()
                self._newest += 1
        with self._file(self._newest).open("ab") as log:
            log.write(entries)

    def _file(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def read(self, asked: Asked) -> Iterator[bytes]:
        """In pieces, for as long as the container runs where it is followed."""
        new_line = True
        for entries in self._entry_blocks(asked):
            piece = bytearray()
            for entry in entries:
                stamp, _, rest = entry.partition(b" ")
                _, tag, content = rest.split(b" ", 2)
                # The time picks parts of lines: a reading may begin within a line, without a stamp then.
                if asked.since is None or datetime.fromisoformat(stamp.decode()) >= asked.since:
                    piece += stamp + b" " if asked.timestamps and new_line else b""
                    piece += content + (b"\n" if tag == b"F" else b"")
                new_line = tag == b"F"
            if piece:
                yield bytes(piece)

    def _entry_blocks(self, asked: Asked) -> Iterator[list[bytes]]:
        number = self._newest
        if asked.tail is not None:
            yield self._file(number).read_bytes().split(b"\n")[:-1][-asked.tail :]
            return
        while True:
            yield from self._blocks_of(number, follow=asked.follow)
            if number == self._newest or not asked.follow:
                return
            number += 1

    def _blocks_of(self, number: int, *, follow: bool) -> Iterator[list[bytes]]:
        rest = b""
        with self._file(number).open("rb") as log:
            while True:
                last = self.complete.is_set() or not follow or number < self._newest
                while block := log.read(1 << 20):
                    *entries, rest = (rest + block).split(b"\n")
                    yield entries
                if last:
                    return
                self.complete.wait(POLL_S)

    def _entries(self, piece: bytes) -> bytes:
        *lines, rest = (self._rest + piece).split(b"\n")
        written = bytearray()
        for line in lines:
            parts = [line[n : n + PART] for n in range(0, len(line), PART)] or [b""]
            for part in parts[:-1]:
                written += _entry(b"P", part)
            written += _entry(b"F", parts[-1])
        while len(rest) > PART:
            written += _entry(b"P", rest[:PART])
            rest = rest[PART:]
        self._rest = rest
        return bytes(written)


def _entry(tag: bytes, content: bytes) -> bytes:
    return _stamp() + b" stdout " + tag + b" " + content + b"\n"


def _stamp() -> bytes:
    """With nine digits, of which the clock knows six."""
    return cluster_now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
