from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from scheduler_project.kernel.abandoning import MOST_IDLE, Abandoned, unless_stopping


def test_it_gives_what_the_call_returns_and_raises_what_it_raises() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    assert unless_stopping(threading.Event(), 1, lambda: 3) == 3
    with pytest.raises(TimeoutError, match="its own"):
        unless_stopping(threading.Event(), 1, fail)


def test_one_thread_makes_many_calls() -> None:
    made = [unless_stopping(threading.Event(), 1, threading.current_thread) for _ in range(50)]
    # The first may have found several idle ones; which of them takes the next is not promised.
    assert len(set(made)) < 5
    assert all(thread.daemon for thread in made)


def test_calls_at_once_do_not_wait_for_each_other_and_leave_no_more_threads_than_are_kept() -> None:
    number = MOST_IDLE + 10
    together, before = threading.Barrier(number, timeout=30), threading.active_count()

    def call() -> None:
        unless_stopping(threading.Event(), 1, together.wait)

    callers = [threading.Thread(target=call) for _ in range(number)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    assert not any(caller.is_alive() for caller in callers)
    _eventually(lambda: threading.active_count() <= before + MOST_IDLE)


def test_who_is_to_end_leaves_a_call_behind_that_hangs() -> None:
    stopping, goes_on = threading.Event(), threading.Event()
    stopping.set()
    with pytest.raises(Abandoned):
        unless_stopping(stopping, 0.01, goes_on.wait)
    assert unless_stopping(stopping, 5, lambda: "another") == "another"
    goes_on.set()


def _eventually(condition: Callable[[], bool]) -> None:
    waiting = threading.Event()
    assert any(condition() or waiting.wait(0.05) for _ in range(200))
