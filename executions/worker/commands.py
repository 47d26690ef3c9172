"""From a RunSpec to a container: how each type of work is started (pure).

Python     the command's words, started directly: ``python etl/load.py --full``
Script     the command is the text of a script for ``sh``
SQL        the command is SQL for ``psql``, which finds its server by PGHOST, PGUSER, …
Container  the words replace the image's own command; none: the image decides

Parameters reach the program as ``PARAM_<NAME>`` each and all together, as JSON, in
``PUNCTUAL_PARAMETERS``. A value that is not a text is given as JSON. What they and the scheduler
set (RESERVED) goes before what the job's env sets.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from containers.spec import (
    LABEL_ATTEMPT,
    LABEL_EXECUTION,
    LABEL_JOB,
    LABEL_OWNER,
    ContainerSpec,
    container_name,
)
from executions.worker.assignments import Assignment
from executions.worker.rendering import Rendered, TemplateRefused
from scheduler_project.kernel.texts import shown

RESERVED = ("PUNCTUAL_", "PARAM_")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDefaults:
    """What a deployment sets for all runs. ``images``: by type. ``passed_env``: handed on by the worker."""

    images: Mapping[str, str] = field(default_factory=dict)
    passed_env: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    start_timeout: timedelta = timedelta(minutes=5)
    grace: timedelta = timedelta(seconds=10)


def container_spec(given: Assignment, rendered: Rendered, defaults: RunDefaults) -> ContainerSpec:
    spec = given.spec
    return ContainerSpec(
        name=container_name(given.execution_id, given.attempt),
        argv=command_words(spec.type, rendered.command),
        image=spec.image or defaults.images.get(spec.type, ""),
        env={**defaults.passed_env, **_environment(given, rendered)},
        labels={
            LABEL_EXECUTION: str(given.execution_id),
            LABEL_ATTEMPT: str(given.attempt),
            LABEL_JOB: spec.job_name,
            LABEL_OWNER: spec.owner,
        },
        memory_bytes=spec.memory_bytes or defaults.memory_bytes,
        cpus=spec.cpus,
        timeout_s=spec.timeout_s,
        start_timeout_s=defaults.start_timeout.total_seconds(),
        grace_s=defaults.grace.total_seconds(),
    )


def command_words(work_type: str, command: str) -> tuple[str, ...]:
    """The words to start. TemplateRefused where the command's quotes do not pair."""
    if work_type == "Script":
        return ("sh", "-c", command)
    if work_type == "SQL":
        return ("psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--command", command)
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise TemplateRefused(f"command: {error} in {shown(command)}") from error


def _environment(given: Assignment, rendered: Rendered) -> dict[str, str]:
    return {
        **rendered.env,
        **{variable_name(name): _text(value) for name, value in rendered.parameters.items()},
        "PUNCTUAL_PARAMETERS": json.dumps(rendered.parameters, ensure_ascii=False),
        "PUNCTUAL_EXECUTION_ID": str(given.execution_id),
        "PUNCTUAL_ATTEMPT": str(given.attempt),
        "PUNCTUAL_JOB": given.spec.job_name,
        "PUNCTUAL_SCHEDULED_FOR": given.scheduled_for.isoformat(),
    }


def variable_name(parameter: str) -> str:
    """``execution_date`` reaches the program as ``PARAM_EXECUTION_DATE``."""
    return RESERVED[1] + re.sub(r"\W", "_", parameter, flags=re.ASCII).upper()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
