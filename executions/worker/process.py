"""The run worker that this process is, made from the settings."""

from __future__ import annotations

import os
from dataclasses import replace

from django.conf import settings

from containers.docker import DockerOptions
from containers.registry import RuntimeOptions, runtime_from
from containers.runtime import Runtime
from executions.store import default_store
from executions.worker.commands import RunDefaults
from executions.worker.lifecycle import RunWorker
from executions.worker.slots import Slots
from scheduler_project.kernel.clock import SYSTEM_CLOCK

_current: RunWorker | None = None


def open_worker(slots: Slots, name: str) -> RunWorker:
    """Make this process a run worker."""
    global _current  # noqa: PLW0603 -- Celery's signals have no other way to find it
    _current = RunWorker(
        f"{name}/{os.getpid()}",
        slots,
        configured_runtime(),
        default_store(),
        defaults=configured_defaults(),
        clock=SYSTEM_CLOCK,
    )
    return _current


def current_worker() -> RunWorker | None:
    """The run worker that this process is, if it is one."""
    return _current


def configured_defaults() -> RunDefaults:
    """What this deployment sets for all runs."""
    return RunDefaults(
        # Plain processes have none: an image that reaches them is one that somebody asked for.
        images={} if settings.PUNCTUAL_RUNTIME == "process" else settings.PUNCTUAL_IMAGES,
        passed_env={name: os.environ[name] for name in settings.PUNCTUAL_RUN_ENV if name in os.environ},
        memory_bytes=settings.PUNCTUAL_MEMORY_BYTES,
        start_timeout=settings.PUNCTUAL_START_TIMEOUT,
        grace=settings.PUNCTUAL_GRACE,
    )


def configured_runtime() -> Runtime:
    options = RuntimeOptions(
        home=settings.PUNCTUAL_HOME, working_dir=settings.PUNCTUAL_PROCESS_WORKDIR, docker=DockerOptions()
    )
    if settings.PUNCTUAL_PROCESS_PATH:
        options = replace(options, path=settings.PUNCTUAL_PROCESS_PATH)
    return runtime_from(settings.PUNCTUAL_RUNTIME, options)
