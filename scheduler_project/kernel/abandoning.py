"""Calls that may hang, in a process that must be able to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from scheduler_project.kernel.errors import PunctualError

LOOK_EVERY_S = 0.5
_T = TypeVar("_T")


class Abandoned(PunctualError):
    """The call had not returned when its process had to go on without it."""


def unless_stopping(stopping: threading.Event, patience_s: float, call: Callable[[], _T]) -> _T:
    """What ``call`` returns or raises; Abandoned where it goes on for ``patience_s`` after ``stopping``.

    It has a thread of its own, which keeps no process from ending, and which is left behind then.
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

    threading.Thread(target=run, name=f"{threading.current_thread().name}-call", daemon=True).start()
    while not done.wait(LOOK_EVERY_S):
        if stopping.is_set() and not done.wait(patience_s):
            raise Abandoned(f"it did not return within {patience_s:g} s of the end of its process")
    return result.result()
