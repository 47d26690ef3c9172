"""What a test can make go wrong: in the API server's answers, and in the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.kubernetes_api.store import Problem


@dataclass
class Failure:
    """Answers of one status to requests whose method and path contain ``words``; ``left`` of them."""

    words: str
    status: int
    left: int
    message: str = ""


class Faults:
    """Read by the server for each request, and by scheduler and kubelet for each pod."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: list[Failure] = []
        self._lost_answers: list[Failure] = []
        self._delays: list[tuple[str, float]] = []
        self.watch_lags: dict[str, float] = {}  # seconds by resource, for what a watch tells
        self.odd_lines: list[bytes] = []  # each said once, by the next watch that has something to say
        self._streams: dict[Callable[[], None], tuple[str, threading.Event]] = {}
        self.unschedulable = ""
        self.absent_images: dict[str, str] = {}
        self.silent_nodes: set[str] = set()
        self.observers: list[Callable[[str], object]] = []

    def fail(self, words: str, status: int, times: int = 1, message: str = "told to fail") -> None:
        """The next ``times`` requests like ``GET /api/v1`` (method, a space, part of the path) fail."""
        with self._lock:
            self._failures.append(Failure(words, status, times, message))

    def lose_answers(self, words: str, times: int) -> None:
        """The next ``times`` such requests are carried out, and their answers are lost on the way."""
        with self._lock:
            self._lost_answers.append(Failure(words, 0, times))

    def loses_answer(self, request: str) -> bool:
        with self._lock:
            lost = next((one for one in self._lost_answers if one.words in request and one.left), None)
            if lost is not None:
                lost.left -= 1
            return lost is not None

    def slow(self, words: str, seconds: float) -> None:
        """Answers to such requests take that long, until ``heal``."""
        with self._lock:
            self._delays.append((words, seconds))

    def heal(self) -> None:
        with self._lock:
            self._failures.clear()
            self._delays.clear()
            self.watch_lags.clear()
            self.odd_lines.clear()
            self.unschedulable = ""
            self.absent_images.clear()
            self.silent_nodes.clear()

    def meet(self, request: str) -> None:
        """Let ``request`` have what is in store for it. Raises Problem."""
        for observer in self.observers:
            observer(request)
        with self._lock:
            delay = sum(seconds for words, seconds in self._delays if words in request)
            failure = next((one for one in self._failures if one.words in request and one.left), None)
            if failure is not None:
                failure.left -= 1
        if delay:
            time.sleep(delay)
        if failure is not None:
            raise Problem(failure.status, _REASONS.get(failure.status, ""), failure.message)

    def odd_line(self) -> bytes:
        with self._lock:
            return self.odd_lines.pop(0) if self.odd_lines else b""

    def streaming(self, request: str, cut: Callable[[], None]) -> threading.Event:
        """A stream (a watch, a followed log) has begun that ``cut`` would break off; what it gets when it
        is to say nothing more."""
        silenced = threading.Event()
        with self._lock:
            self._streams[cut] = request, silenced
        return silenced

    def streamed(self, cut: Callable[[], None]) -> None:
        with self._lock:
            self._streams.pop(cut, None)

    def silence_streams(self, words: str) -> int:
        """Open streams with ``words`` in their path say nothing more and have no end, as where a connection
        died without a word; how many there were."""
        with self._lock:
            found = [silenced for request, silenced in self._streams.values() if words in request]
        for silenced in found:
            silenced.set()
        return len(found)

    def cut_streams(self) -> int:
        """Break off every stream, without an end; how many there were."""
        with self._lock:
            cuts, self._streams = list(self._streams), {}
        for cut in cuts:
            cut()
        return len(cuts)


_REASONS = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
