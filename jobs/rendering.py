"""What a run of a job would be: its words, its environment, its container, as a worker would start it.

Nothing is started and nothing is looked up: of secrets there are the names, and of what a worker passes on
from its own environment (PUNCTUAL_RUN_ENV) as well, since this process has other values or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from containers.fields import size_text
from containers.spec import ContainerSpec
from executions.worker.assignments import Assignment
from executions.worker.defaults import configured_defaults
from executions.worker.preparing import Prepared, Unstartable, prepare
from jobs.models import Job
from jobs.occurrences import occurrence
from jobs.snapshots import overridden, spec_of
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class WouldRun:
    """``words``: the command, a text each. ``env``: without secrets. ``secrets``: their names by variable.
    ``passed``: variables that the worker hands on. ``container``: what is set of it, in words, by what it is.
    ``problem``: why nothing could be started; the rest is empty then."""

    planned: datetime
    words: tuple[str, ...] = ()
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    container: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def would_run(job: Job, planned: datetime, parameters: Mapping[str, Any] | None = None) -> WouldRun:
    """The first attempt of a run planned for ``planned``, with ``parameters`` in place of the job's."""
    try:
        spec = overridden(spec_of(job), parameters or {})
        run = occurrence(job, planned)
        given = Assignment(execution_id=run.id, attempt=1, queued_at=planned, spec=spec, spec_id=spec.id)
        found = prepare(given, replace(configured_defaults(), passed_env={}))
    except (Unstartable, InvalidValue) as error:
        return WouldRun(planned, problem=error.message)
    return _in_words(planned, found)


def _in_words(planned: datetime, found: Prepared) -> WouldRun:
    container = found.container
    return WouldRun(
        planned,
        words=tuple(container.argv),
        image=container.image,
        env=dict(sorted(container.env.items())),
        secrets=dict(found.secret_env),
        passed=tuple(settings.PUNCTUAL_RUN_ENV),
        container={name: text for name, text in _settings_of(container) if text},
    )


def _settings_of(spec: ContainerSpec) -> list[tuple[str, str]]:
    """What differs from nothing of a container, each as people write it."""
    return [
        ("Name", spec.name),
        ("Working folder", spec.working_dir),
        ("User", spec.user),
        ("Network", spec.network),
        ("Volumes", ", ".join(f"{volume.name or volume.kind} at {volume.target}" for volume in spec.volumes)),
        ("Memory", _size(spec.memory_bytes)),
        ("CPUs", "" if spec.cpus is None else f"{spec.cpus:g}"),
        ("Disk", _size(spec.ephemeral_bytes)),
        ("GPUs", str(spec.gpus or "")),
        ("Processes", str(spec.pids_limit)),
        ("Root file system", "read-only" if spec.read_only_root else "writable"),
        ("Time-out", "none" if spec.timeout_s is None else _length(spec.timeout_s)),
        ("To start within", _length(spec.start_timeout_s)),
        ("To end within, when stopped", _length(spec.grace_s)),
        ("Service account", spec.service_account),
    ]


def _size(count: int | None) -> str:
    return "" if count is None else str(size_text(count))


def _length(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))
