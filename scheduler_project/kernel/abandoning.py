"""Calls that may hang, in a process that must be able to end."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from scheduler_project.kernel.errors import PunctualError

LOOK_EVERY_S = 0.5
MOST_IDLE = 64
_T = TypeVar("_T")


class Abandoned(PunctualError):
    """The call had not returned when its process had to go on without it."""


class _Hand(threading.Thread):
    """A thread that makes one call after the other: to start one for each costs more than many a call."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def take(self, call: Callable[[], None], name: str) -> None:
        """``call`` raises nothing."""
        self.name = name
        self._calls.put(call)

    def run(self) -> None:
        while True:
            self._calls.get()()
            if len(_idle) >= MOST_IDLE:
                return
            _idle.append(self)


_idle: deque[_Hand] = deque()


def _idle_hand() -> _Hand:
    try:
        return _idle.pop()
    except IndexError:
        hand = _Hand()
        hand.start()
        return hand


def unless_stopping(stopping: threading.Event, patience_s: float, call: Callable[[], _T]) -> _T:
    """What ``call`` returns or raises; Abandoned where it goes on for ``patience_s`` after ``stopping``.

    It is made by another thread, which keeps no process from ending, and which is left behind then.
    """
    result: Future[_T] = Future()
    done = threading.Event()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)
        finally:
            done.set()

    _idle_hand().take(run, f"{threading.current_thread().name}-call")
    while not done.wait(LOOK_EVERY_S):
        if stopping.is_set() and not done.wait(patience_s):
            raise Abandoned(f"it did not return within {patience_s:g} s of the end of its process")
    return result.result()
