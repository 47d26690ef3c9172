"""Follows the output of a run while it grows, from attempt to attempt, until the run has ended.

``step`` looks once: it tells what is new, and how long to wait before the next look. Nothing is held
meanwhile, neither a file nor a connection; what was told last is a ``Place``, from which another follower,
in another process, goes on.

Text is UTF-8: what is not comes as U+FFFD. A character that has not arrived whole is told when it has.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from containers.logs.portions import last_lines
from containers.logs.tracks import Track
from executions.followed_rows import FollowedRows
from executions.log_places import track_of
from executions.logs import latest_attempt
from executions.models import Execution
from executions.states import TERMINAL, State
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.texts import shown

LIVE_S = 0.25
IDLE_S = 0.5
LATE_S = 5.0
"""How long the rest of an output is waited for whose attempt has ended: its worker may be gone."""
MOST_A_STEP = 8
TAIL_BYTES = 1024 * 1024
PLACE = r"([0-9]{1,5})-([0-9]{1,9})-([0-9]{1,18})(-end)?"


@dataclass(frozen=True, slots=True)
class Place:
    """How far a follower has got: the attempt, and how many bytes of its notes and its output were told."""

    attempt: int
    notes: int = 0
    output: int = 0
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.attempt}-{self.notes}-{self.output}{'-end' if self.ended else ''}"


def read_place(text: str) -> Place:
    """What ``str`` made of a Place. InvalidValue otherwise."""
    found = re.fullmatch(PLACE, text) if text.isascii() else None
    if found is None:
        raise InvalidValue(f"{shown(text)} is not an id of these events.", field="Last-Event-ID")
    attempt, notes, output = (int(number) for number in found.groups()[:3])
    return Place(attempt, notes, output, ended=found[4] is not None)


class Kind(StrEnum):
    OUTPUT = "output"
    NOTE = "note"  # Punctual's own words, before the run begins
    GAP = "gap"  # bytes [from, to) are left out
    ATTEMPT = "attempt"  # the next one
    END = "end"


@dataclass(frozen=True, slots=True)
class Told:
    """``place``: how far one has got with it."""

    kind: Kind
    place: Place
    body: dict[str, Any]


class Follower:
    """Of one run, for one reader."""

    def __init__(self, rows: FollowedRows, execution: Execution, place: Place) -> None:
        self._rows = rows
        self._id = execution.id
        self._place = place
        self._pieces: Iterator[tuple[int, bytes]] | None = None
        self._torn = b""  # the beginning of a character, behind ``_place``
        self._whole = False
        self._over_since: float | None = None

    def step(self) -> tuple[list[Told], float]:
        """What is new, and the seconds to the next step; the last one tells END. ArchiveUnavailable."""
        execution = self._rows.row(self._id)
        if execution is None:
            return [
                self._end({"status": None, "reason": "", "message": "The run is not kept any more."})
            ], 0.0
        over = execution.state in TERMINAL or execution.attempt > self._place.attempt
        track = None if self._pieces is not None else self._track(execution)
        told = [*self._notes(track), *self._output(track)]
        if told or self._pieces is not None:
            self._over_since = None
            return told, 0.0
        if not over:
            return [], LIVE_S if execution.state == State.ACTIVE else IDLE_S
        if not self._whole and self._may_come_late():
            return [], LIVE_S
        return [*self._rest(), self._next(execution)], 0.0

    def _track(self, execution: Execution) -> Track | None:
        """None too before it begins: no archive is asked for that."""
        begins = execution.state not in {State.WAITING, State.PAUSED}
        over = execution.attempt > self._place.attempt
        track = track_of(execution, self._place.attempt) if begins or over else None
        self._whole = track is not None and track.whole
        return track

    def _notes(self, track: Track | None) -> Iterator[Told]:
        notes = track.notes()[self._place.notes :] if track is not None else b""
        if notes:
            self._place = replace(self._place, notes=self._place.notes + len(notes))
            yield self._told(Kind.NOTE, {"text": notes.decode(errors="replace")})

    def _output(self, track: Track | None) -> Iterator[Told]:
        """Some of what is there; the rest stays in ``_pieces``."""
        if track is not None:
            self._torn = b""
            self._pieces = track.after(self._place.output)
        count = 0
        for begin, data in islice(self._pieces or (), MOST_A_STEP):
            count += 1
            yield from self._piece(begin, data)
        if count < MOST_A_STEP:
            self._pieces = None

    def _piece(self, begin: int, data: bytes) -> Iterator[Told]:
        if begin > self._place.output + len(self._torn):
            yield from self._rest()
            yield from self._gap(begin)
        data = self._torn + data
        whole = len(data) - _torn_bytes(data)
        self._torn = data[whole:]
        if whole:
            yield self._text(data[:whole])

    def _rest(self) -> Iterator[Told]:
        """The beginning of a character whose end does not come."""
        if self._torn:
            yield self._text(self._torn)
            self._torn = b""

    def _gap(self, end: int) -> Iterator[Told]:
        begin, self._place = self._place.output, replace(self._place, output=end)
        yield self._told(Kind.GAP, {"from": begin, "to": end})

    def _text(self, data: bytes) -> Told:
        begin = self._place.output
        self._place = replace(self._place, output=begin + len(data))
        text = data.decode(errors="replace")
        return self._told(Kind.OUTPUT, {"from": begin, "to": self._place.output, "text": text})

    def _may_come_late(self) -> bool:
        """Until LATE_S after it was first seen that the attempt is over."""
        if self._over_since is None:
            self._over_since = monotonic()
        return monotonic() - self._over_since < LATE_S

    def _next(self, execution: Execution) -> Told:
        self._over_since = None
        if execution.attempt > self._place.attempt:
            self._place = Place(self._place.attempt + 1)
            return self._told(Kind.ATTEMPT, {})
        names = {"status": "state", "reason": "reason", "message": "message", "exitCode": "exit_code"}
        return self._end({shown: getattr(execution, name) for shown, name in names.items()})

    def _end(self, body: dict[str, Any]) -> Told:
        self._place = replace(self._place, ended=True)
        return self._told(Kind.END, body)

    def _told(self, kind: Kind, body: dict[str, Any]) -> Told:
        return Told(kind, self._place, {"attempt": self._place.attempt, **body})


def begun_attempt(execution: Execution) -> int:
    """The attempt to begin with: the latest that has begun, or the one that will."""
    try:
        return latest_attempt(execution)
    except NotFound:
        return execution.attempt


def place_of_tail(execution: Execution, attempt: int, lines: int) -> Place:
    """Where the last ``lines`` of what there is now begin, of TAIL_BYTES at most. ArchiveUnavailable."""
    track = track_of(execution, attempt)
    if track is None:
        return Place(attempt)
    notes, end = track.notes(), 0
    last = deque[bytes]()
    size = 0
    for begin, data in track.after(0):
        if begin > end:
            last.clear()
            size = 0
        end = begin + len(data)
        last.append(data)
        size += len(data)
        while size - len(last[0]) >= TAIL_BYTES:
            size -= len(last.popleft())
    text = b"".join(last_lines([b"".join(last)[-TAIL_BYTES:]], lines))
    begin = end - len(text)
    return Place(attempt, len(notes) if begin else 0, begin)


def _torn_bytes(data: bytes) -> int:
    """How many bytes at the end of ``data`` begin a character of UTF-8 that is not all there."""
    for size in range(1, min(4, len(data) + 1)):
        byte = data[-size]
        if byte & 0xC0 == 0x80:
            continue
        needed = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
        return size if needed > size else 0
    return 0
