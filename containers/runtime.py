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

from containers.capacity import Capacity
from containers.launching import Launching
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.outcome import Exit, Outcome, Reason
from containers.secrets import SecretSource
from containers.spec import ContainerSpec
from containers.waiting import Check, unchecked
from scheduler_project.kernel.errors import PermanentError, RetryableError

__all__ = [
    "Container",
    "ContainerSpec",
    "Exit",
    "Follower",
    "LaunchFailed",
    "Launching",
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
    """One started container. Every method but ``now`` and ``follow`` may raise RuntimeUnavailable."""

    @property
    def name(self) -> str: ...

    @property
    def started_at(self) -> datetime:
        """When it started, by the engine's clock; aware, UTC."""
        ...

    def now(self) -> datetime:
        """The time by the engine's clock, as well as it is known."""
        ...

    def wait(self, timeout_s: float) -> Exit | None:
        """How it ended, or None if it still runs after ``timeout_s`` seconds.

        An Exit whose code is None: the container has vanished, and how it ended is not known.
        """
        ...

    def stop(self, grace_s: float, check: Check = unchecked) -> None:
        """SIGTERM, ``grace_s`` seconds, SIGKILL; returns when all of it is verified gone.

        ``check`` is called about every 0.2 s of the grace; what it raises ends the stop there, and
        whoever stops the container again begins anew.
        """
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

    def identity(self) -> str:
        """The engine's own id: the same for all workers that reach the same containers, and for no others.

        Printable ASCII without spaces, at most 100 characters. Raises RuntimeUnavailable.
        """
        ...

    def capacity(self) -> Capacity:
        """What it has for its containers together. Raises RuntimeUnavailable."""
        ...

    def launch(self, spec: ContainerSpec, launching: Launching | None = None) -> Container:
        """Create and start; where a container of that name exists, attach to it.

        While it lasts, ``launching`` is told what it waits for, and asked whether it is still wanted
        (None: for ``spec.start_timeout_s``, always wanted), and told when it is known not to have started.
        Raises LaunchFailed (final for this attempt), RuntimeUnavailable (try again later),
        LaunchCancelled or NotLaunched (as asked for). Nothing is left of a launch that failed or was
        cancelled.
        """
        ...

    def attach(self, name: str, launching: Launching | None = None) -> Container | None:
        """The container of that name, running or ended; None if there is none that ever started.

        One that an engine itself is about to start is waited for, as ``launch`` does, where there is
        a ``launching``; it raises as ``launch`` does then.
        """
        ...

    def forget(self, name: str) -> None:
        """Remove the container of that name; idempotent."""
        ...

    def secret_source(self) -> SecretSource | None:
        """Where this runtime keeps secrets itself; None where it keeps none."""
        ...

    def ping(self) -> None:
        """Raises RuntimeUnavailable, saying what to do about it, unless containers can be started."""
        ...

    def owned(self, namespace: str = "") -> list[str]:
        """Names of the containers of Punctual that exist, running or ended.

        ``namespace``: only those that carry it as their label LABEL_NAMESPACE.
        """
        ...

    def keep_images_within(self, limit_bytes: int) -> list[str]:
        """Remove images that were pulled for runs and that no container needs, those longest unused first,
        until what is left of them takes no more than that; the names of the removed.

        Nothing where there are no images, or where they are somebody else's to keep (a cluster's nodes).
        """
        ...

    def close(self) -> None:
        """Let go of connections and threads; containers go on."""
        ...
