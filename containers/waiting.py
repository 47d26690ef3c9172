"""Waiting that somebody may cut short."""

from __future__ import annotations

from collections.abc import Callable

from containers.launching import ASK_EVERY_S
from scheduler_project.kernel.clock import monotonic

Check = Callable[[], None]


def unchecked() -> None:
    """Never ends a wait."""


def checked_wait(wait: Callable[[float], bool], timeout_s: float, check: Check) -> bool:
    """``wait`` (for so many seconds; whether it is over) until it is, for ``timeout_s`` in all.

    ``check`` is called every 0.2 s; what it raises ends the wait.
    """
    deadline = monotonic() + timeout_s
    while not wait(max(0.0, min(ASK_EVERY_S, deadline - monotonic()))):
        if monotonic() >= deadline:
            return False
        check()
    return True
