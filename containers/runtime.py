"""What every runtime can do. The contract suite in tests/contract holds all of them to it.

    launch ──► Container ──► wait … Exit ──► (outcome recorded) ──► forget
                  │  ▲
       worker dies│  │attach, by any worker that reaches the same engine
                  ▼  │
               the container goes on

A container outlives whoever watches it. Nothing here removes one by itself: it is forgotten
only when its outcome is safe elsewhere, so that a new watcher can always read how it ended.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from containers.follow import Follower
from containers.logs import LogWriter
from containers.outcome import Exit, Outcome, Reason
from containers.spec import ContainerSpec
from scheduler_project.kernel.errors import PermanentError, RetryableError

__all__ = [
    "Container",
    "ContainerSpec",
    "Exit",
    "Follower",
    "LaunchFailed",
    "LogWriter",
    "Outcome",
    "Reason",
    "Runtime",
    "RuntimeUnavailable",
]


class RuntimeUnavailable(RetryableError):
    """The container engine does not answer."""


class LaunchFailed(PermanentError):
    """This attempt cannot be started; ``reason`` says of which kind the failure is."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Container(Protocol):
    """One started container. Every method but ``follow`` may raise RuntimeUnavailable."""

    @property
    def name(self) -> str: ...

    @property
    def started_at(self) -> datetime:
        """When it started, by the engine's clock; aware, UTC."""
        ...

    def wait(self, timeout_s: float) -> Exit | None:
        """How it ended, or None if it still runs after ``timeout_s`` seconds.

        An Exit whose code is None: the container has vanished, and how it ended is not known.
        """
        ...

    def stop(self, grace_s: float) -> None:
        """SIGTERM, ``grace_s`` seconds, SIGKILL; returns when all of it is verified gone."""
        ...

    def follow(self, log: LogWriter) -> Follower:
        """Copy its output into ``log``, live, from ``log.position`` on, in a thread of its own."""
        ...

    def remove(self) -> None:
        """Remove it, killed first if it still runs; no error where it is gone already."""
        ...


class Runtime(Protocol):
    """A place where containers run."""

    @property
    def name(self) -> str: ...

    def launch(self, spec: ContainerSpec) -> Container:
        """Create and start; where a container of that name exists, attach to it.

        Raises LaunchFailed (final for this attempt) or RuntimeUnavailable (try again later).
        """
        ...

    def attach(self, name: str) -> Container | None:
        """The container of that name, running or ended; None if there is none that ever started."""
        ...

    def forget(self, name: str) -> None:
        """Remove the container of that name; idempotent."""
        ...

    def ping(self) -> None:
        """Raises RuntimeUnavailable, saying what to do about it, unless containers can be started."""
        ...

    def owned(self) -> list[str]:
        """Names of the containers of Punctual that exist, running or ended."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; containers go on."""
        ...
