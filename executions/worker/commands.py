"""From a RunSpec to a container: how each type of work is started (pure).

Python     the command's words, started directly: ``python etl/load.py --full``
Script     the command is the text of a script for ``sh``
SQL        the command is SQL for ``psql``, which finds its server by PGHOST, PGUSER, …
Container  the words replace the image's own command; none: the image decides

Parameters reach the program as ``PARAM_<NAME>`` each and all together, as JSON, in
``PUNCTUAL_PARAMETERS``. A value that is not a text is given as JSON. What they and the scheduler
set (RESERVED) goes before what the job's env sets, and a secret before them all.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from containers.allowed import Allowed
from containers.options import RESERVED, ContainerOptions
from containers.secrets import SecretSource
from containers.spec import (
    DEFAULT_PIDS_LIMIT,
    LABEL_ATTEMPT,
    LABEL_EXECUTION,
    LABEL_JOB,
    LABEL_NAMESPACE,
    LABEL_OWNER,
    ContainerSpec,
    PullPolicy,
    container_name,
)
from executions.run_tokens import VARIABLE, run_token
from executions.worker.assignments import Assignment
from executions.worker.rendering import Rendered, TemplateRefused
from scheduler_project.kernel.texts import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDefaults:
    """What a deployment sets for all runs. ``images``: by type. ``passed_env``: handed on by the worker.
    A limit that ``allowed`` has is the limit, too, of a run that asks for none. ``secrets``: where they are
    looked for, in that order. ``namespace``: what tells its containers from those of other systems.
    ``secret_key``: what tokens of runs are signed with; empty: they get none."""

    images: Mapping[str, str] = field(default_factory=dict)
    passed_env: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    start_timeout: timedelta = timedelta(minutes=5)
    grace: timedelta = timedelta(seconds=10)
    allowed: Allowed = field(default_factory=Allowed)
    secrets: Sequence[SecretSource] = ()
    namespace: str = ""
    secret_key: str = ""


def container_spec(
    given: Assignment,
    rendered: Rendered,
    options: ContainerOptions,
    defaults: RunDefaults,
) -> ContainerSpec:
    """The container of an attempt, without its secrets. ``options``: its spec's ``container``, as read."""
    spec, token = given.spec, _token(given, defaults)
    return ContainerSpec(
        name=container_name(given.execution_id, given.attempt),
        argv=command_words(spec.type, rendered.command),
        image=spec.image or defaults.images.get(spec.type, ""),
        env={**defaults.passed_env, **_environment(given, rendered), **token},
        masked=tuple(token.values()),
        labels={
            **options.labels,
            LABEL_EXECUTION: str(given.execution_id),
            LABEL_ATTEMPT: str(given.attempt),
            LABEL_JOB: spec.job_name,
            LABEL_OWNER: spec.owner,
            LABEL_NAMESPACE: defaults.namespace,
        },
        timeout_s=spec.timeout_s,
        start_timeout_s=(options.start_timeout or defaults.start_timeout).total_seconds(),
        grace_s=(defaults.grace if options.grace is None else options.grace).total_seconds(),
        **_limits(options, defaults),
        **_as_asked(options),
    )


def _limits(options: ContainerOptions, defaults: RunDefaults) -> dict[str, Any]:
    """A request above the default limit is the limit: nobody reserves more than can be used."""
    allowed = defaults.allowed
    memory = options.memory_bytes or max(defaults.memory_bytes or 0, options.memory_request_bytes or 0)
    return {
        "memory_bytes": memory or None,
        "memory_request_bytes": options.memory_request_bytes,
        "cpus": options.cpus or allowed.cpus,
        "cpus_request": options.cpus_request,
        "ephemeral_bytes": options.ephemeral_bytes or allowed.ephemeral_bytes,
        "ephemeral_request_bytes": options.ephemeral_request_bytes,
        "pids_limit": options.pids or min(DEFAULT_PIDS_LIMIT, allowed.pids),
    }


def _as_asked(options: ContainerOptions) -> dict[str, Any]:
    return {
        "working_dir": options.working_dir,
        "gpus": options.gpus,
        "user": options.user,
        "read_only_root": options.read_only_root,
        "volumes": options.volumes,
        "network": options.network,
        "pull_policy": PullPolicy(options.pull_policy or PullPolicy.IF_NOT_PRESENT),
        "pull_secret": options.pull_secret,
        "node_selector": options.node_selector,
        "tolerations": options.tolerations,
        "service_account": options.service_account,
        "pod_template": options.pod_template,
    }


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


def _token(given: Assignment, defaults: RunDefaults) -> dict[str, str]:
    """With which the run can say itself how it ended."""
    key = defaults.secret_key
    return {VARIABLE: run_token(key, given.execution_id, given.attempt)} if key else {}


def variable_name(parameter: str) -> str:
    """``execution_date`` reaches the program as ``PARAM_EXECUTION_DATE``."""
    return RESERVED[1] + re.sub(r"\W", "_", parameter, flags=re.ASCII).upper()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
