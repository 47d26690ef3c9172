"""A runtime that runs nothing, and the Celery application of a worker that has it.

    celery -A benchmarks.noop worker

What is left of a run is what Punctual itself does for it: the claim, the events, the log's folder. Each
container has ended, with exit code 0, as soon as it is asked how it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module

from containers.capacity import Capacity, host_capacity
from containers.launching import Launching
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.outcome import Exit
from containers.spec import ContainerSpec
from containers.waiting import Check, unchecked
from scheduler_project.celery import app
from scheduler_project.kernel.clock import utcnow

__all__ = ["NoopRuntime", "app"]


class _Silent(Follower):
    """Of what says nothing: no thread is needed to copy it."""

    def start(self) -> Follower:
        return self

    def finish(self, timeout_s: float) -> None:
        return

    def cancel(self) -> None:
        return

    def _copy(self) -> None:
        return

    def _interrupt(self) -> None:
        return


@dataclass(slots=True)
class _Ended:
    name: str
    started_at: datetime = field(default_factory=utcnow)

    def now(self) -> datetime:
        return utcnow()

    def wait(self, timeout_s: float) -> Exit | None:
        return Exit(0, utcnow())

    def stop(self, grace_s: float, check: Check = unchecked) -> None:
        return

    def follow(self, log: LogWriter) -> Follower:
        return _Silent(self.name, log)

    def remove(self) -> None:
        return


class NoopRuntime:
    name = "noop"

    def identity(self) -> str:
        return "noop"

    def capacity(self) -> Capacity:
        return host_capacity()

    def launch(self, spec: ContainerSpec, launching: Launching | None = None) -> _Ended:
        return _Ended(spec.name)

    def attach(self, name: str, launching: Launching | None = None) -> _Ended | None:
        return None

    def forget(self, name: str) -> None:
        return

    def secret_source(self) -> None:
        return

    def ping(self) -> None:
        return

    def owned(self, namespace: str = "") -> list[str]:
        return []

    def keep_images_within(self, limit_bytes: int) -> list[str]:
        return []

    def close(self) -> None:
        return


# By name: it needs Django, which is set up by the import of ``app``.
import_module("executions.worker.process").configured_runtime = NoopRuntime  # type: ignore[attr-defined]
