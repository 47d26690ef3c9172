"""Copying what an engine keeps of a container's output: in order, with its times and streams.

The engine sends one frame for each line or, of a line beyond 16 KiB, each part of it:

    stream (1 stdout, 2 stderr), 3 zeros, length (4 bytes, big-endian) │ 2026-12-24T18:00:00.123456789Z text

It keeps a line back until its end has come, also one that is a progress bar's, drawn anew after each "\\r".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from docker.errors import DockerException

from containers.docker.engine import Engine, LogStream, NotFound, cut
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.logs.stamps import Stamp, Stream
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.clock import to_micros

RECONNECT_S = 0.5
RECENT_BYTES = 64 * 1024
PARTIAL_BYTES = 16 * 1024
CHECKED_LINES = 100
MOST_AT_ONCE = 64 * 1024
_HEADER = struct.Struct(">BxxxL")
_SECOND = len("2026-12-24T18:00:00")


class Frame(NamedTuple):
    """What a container wrote on one stream; ``micros`` since 1970 (UTC), by the engine's clock."""

    micros: int
    stream: Stream
    data: bytes


class StreamFollower(Follower):
    """Reads the engine's log from the beginning and skips what is in the log already.

    Skipping by count, unlike asking for "since", neither doubles nor loses lines of one instant.
    A stream that ends may have been cut (by a restart of the engine, say). So when the container
    has ended, the engine's last lines are compared with the last bytes that were read; where they
    differ, the log is read once more as a whole.
    """

    def __init__(self, engine: Engine, container_id: str, name: str, log: LogWriter) -> None:
        super().__init__(name, log)
        self._engine = engine
        self._id = container_id
        self._stream: LogStream | None = None
        self._recent = bytearray()

    def _copy(self) -> None:
        while not self._cancelled.is_set():
            ended = self._ended.is_set()  # asked before reading: what is read afterwards is all there is
            try:
                self._copy_stream(follow=not ended)
                if ended or (self._ended.wait(RECONNECT_S) and self._is_complete()):
                    return
            except NotFound:
                return
            except RuntimeUnavailable:  # what has ended may have done so together with its engine
                (self._cancelled if ended else self._ended).wait(RECONNECT_S)

    def _copy_stream(self, *, follow: bool) -> None:
        with self._engine.answering():
            self._stream = stream = self._engine.log_stream(self._id, follow=follow)
            try:
                self._copy_frames(stream)
            except OSError:  # of the log: the stream has to be read anew
                self._interrupt()
                raise

    def _copy_frames(self, stream: LogStream) -> None:
        """Written is what has arrived by now, all at once: a frame each would cost twice as much."""
        skip = self._log.position
        data, stamps = bytearray(), list[Stamp]()
        for frame in mend(frames(stream)):
            if self._cancelled.is_set():
                return
            self._remember(frame.data)
            if fresh := frame.data[skip:]:
                stamps.append(Stamp(len(data), frame.micros, frame.stream))
                data += fresh
            skip = max(0, skip - len(frame.data))
            if data and (len(data) >= MOST_AT_ONCE or not stream.has_more()):
                self._log.write(bytes(data), stamps)
                data, stamps = bytearray(), []
        if data:
            self._log.write(bytes(data), stamps)

    def _remember(self, piece: bytes) -> None:
        self._recent += piece
        if len(self._recent) > 4 * RECENT_BYTES:
            del self._recent[:-RECENT_BYTES]

    def _is_complete(self) -> bool:
        with self._engine.answering():
            stream = self._engine.log_stream(self._id, follow=False, tail=CHECKED_LINES)
            last = b"".join(frame.data for frame in mend(frames(stream)))
        return self._recent.endswith(last[-RECENT_BYTES:])

    def _interrupt(self) -> None:
        try:
            if self._stream is not None:
                cut(self._stream)
        except DockerException as error:
            # Over SSH it cannot be cut; its thread ends with the container.
            self.error = self.error or str(error)


def frames(pieces: Iterable[bytes]) -> Iterator[Frame]:
    """The whole frames in a stream of bytes, which arrives in pieces of any size."""
    waiting = b""
    for piece in pieces:
        waiting = waiting + piece if waiting else piece
        begin = 0
        while len(waiting) >= (after := begin + _HEADER.size):
            source, length = _HEADER.unpack_from(waiting, begin)
            if len(waiting) < after + length:
                break
            at, _, data = waiting[after : after + length].partition(b" ")
            yield Frame(_micros(at), Stream(source & 3), data)
            begin = after + length
        waiting = waiting[begin:]


def mend(given: Iterable[Frame]) -> Iterator[Frame]:
    """The frames of an engine's log with the line ends that its "local" driver loses.

    A line beyond 16 KiB is kept in several entries, and engine 20.10 gives back the last of them
    without its newline. Such an entry is shorter than 16 KiB, ends in no newline and goes on a line of
    its stream; so does the end of a long last line without one. A short entry that begins a line is
    the end of its stream. An entry that is empty is nothing but the newline of a line whose length is a
    whole number of entries.
    """
    going_on: set[Stream] = set()
    cut_off: Frame | None = None
    for frame in given:
        if cut_off is not None:
            yield cut_off._replace(data=b"\n")
            cut_off = None
        yield frame if frame.data else frame._replace(data=b"\n")
        if frame.data.endswith(b"\n") or not frame.data:
            going_on.discard(frame.stream)
        elif len(frame.data) >= PARTIAL_BYTES:
            going_on.add(frame.stream)
        elif frame.stream in going_on:
            going_on.discard(frame.stream)
            cut_off = frame


def _micros(text: bytes) -> int:
    """Of a time as the engine writes it: UTC, with nine digits behind the second."""
    return _second(text[:_SECOND]) * 1_000_000 + int(text[_SECOND + 1 : _SECOND + 7])


@lru_cache(maxsize=16)
def _second(text: bytes) -> int:
    return to_micros(datetime.fromisoformat(text.decode()).replace(tzinfo=UTC)) // 1_000_000
