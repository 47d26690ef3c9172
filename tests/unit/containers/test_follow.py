"""Whatever a runtime copies from: what did not arrive is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.logs import LogLimit, LogWriter
from containers.logs import follow as module
from containers.logs.follow import Follower


class PipeFollower(Follower):
    """Copies what is put in, until the end is; what waits can be woken up, as a stream can be cut."""

    def __init__(self, log: LogWriter) -> None:
        super().__init__("pipe", log)
        self.waits = threading.Condition()
        self.given: list[bytes] = []
        self.hastened = 0

    def give(self, piece: bytes) -> None:
        with self.waits:
            self.given.append(piece)
            self.waits.notify()

    def _copy(self) -> None:
        while True:
            with self.waits:
                self.waits.wait_for(lambda: self.given or self._cancelled.is_set())
                piece = self.given.pop(0) if self.given else b""
            if not piece:
                return
            self._log.write(piece)

    def _interrupt(self) -> None:
        with self.waits:
            self.waits.notify()

    def _hasten(self) -> None:
        self.hastened += 1


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[PipeFollower]:
    made = PipeFollower(LogWriter(tmp_path / "1.log", LogLimit()))
    made.start()
    yield made
    made.cancel()


def test_an_end_that_does_not_arrive_is_said(follower: PipeFollower) -> None:
    follower.give(b"begin\n")
    follower.finish(0.2)
    assert follower.error == "its end did not arrive within 0.2 s"


def test_an_end_that_arrives_is_not(follower: PipeFollower) -> None:
    follower.give(b"begin\n")
    follower.give(b"")
    follower.finish(5.0)
    assert (follower.error, follower.hastened) == ("", 0)


def test_what_waits_is_hastened_and_given_up_only_when_nothing_comes(
    follower: PipeFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALLED_S", 0.05)
    pieces = iter([b"1", b"2", b"3", b""])

    def go_on() -> None:
        for piece in pieces:
            threading.Event().wait(0.3)
            follower.give(piece)

    threading.Thread(target=go_on, daemon=True).start()
    follower.finish(0.6)
    assert (follower.error, follower.hastened > 3) == ("", True)
