"""What one attempt of a run needs from a runtime; pure values, checked when they are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from containers.secrets import Secret
from containers.volumes import Toleration, Volume
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import unsendable

LABEL_MANAGED = "punctual.managed"
LABEL_NAMESPACE = "punctual.namespace"
LABEL_EXECUTION = "punctual.execution"
LABEL_ATTEMPT = "punctual.attempt"
LABEL_JOB = "punctual.job"
LABEL_OWNER = "punctual.owner"

DEFAULT_PIDS_LIMIT = 1024
LEAST_PIDS = 2  # the command, and what starts it and reaps its orphans
LEAST_MEMORY_BYTES = 6 * 1024 * 1024  # the Docker engine refuses less

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PullPolicy(StrEnum):
    """When an image is fetched although, or because, the engine has it or not."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


def container_name(execution_id: UUID, attempt: int) -> str:
    """The name of the one container that may exist for this attempt, on any runtime."""
    return f"punctual-{execution_id.hex}-{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """Everything a runtime needs to start one attempt.

    ``argv`` empty means the image's own command. ``timeout_s`` counts from the start of the
    container; ``start_timeout_s`` covers pulling and creating; ``grace_s`` lies between SIGTERM
    and SIGKILL. Limits of None are not set. ``memory_bytes``, ``cpus`` and ``ephemeral_bytes`` are
    limits; what is reserved (``…_request…``) is at most as much. ``env`` is without the secrets:
    ``environment`` has both. ``network``: empty is one of its own with the outside in reach, ``none``
    is without any, another word the name of one. ``masked``: values in ``env`` that are hidden in what it
    says. ``pod_template`` is for Kubernetes only.
    Raises InvalidValue for what no runtime can take.
    """

    name: str
    argv: tuple[str, ...] = ()
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: float | None = None
    pids_limit: int = DEFAULT_PIDS_LIMIT
    user: str = ""
    read_only_root: bool = True
    network: str = ""
    timeout_s: float | None = None
    start_timeout_s: float = 300.0
    grace_s: float = 10.0
    secrets: tuple[Secret, ...] = ()
    masked: tuple[str, ...] = ()
    memory_request_bytes: int | None = None
    cpus_request: float | None = None
    ephemeral_bytes: int | None = None
    ephemeral_request_bytes: int | None = None
    gpus: int = 0
    volumes: tuple[Volume, ...] = ()
    pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    pull_secret: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    service_account: str = ""
    pod_template: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_text(self.argv, self.env)
        _check_limits(self.memory_bytes, self.cpus, self.pids_limit)
        _check_times(self.timeout_s, self.start_timeout_s, self.grace_s)

    def environment(self) -> dict[str, str]:
        """All that the program finds in its environment, values of secrets included: show it nowhere."""
        return {**self.env, **{secret.variable: secret.value for secret in self.secrets}}

    def hidden(self) -> tuple[str, ...]:
        """What is to be masked wherever the program says it."""
        return (*(secret.value for secret in self.secrets), *self.masked)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"{name!r} is not a container name: letters, digits, '_', '.' and '-', at most 128", field="name"
        )


def _check_text(argv: tuple[str, ...], env: Mapping[str, str]) -> None:
    if argv and not argv[0]:
        raise InvalidValue("the command begins with an empty word", field="command")
    for word in argv:
        if complaint := unsendable(word):
            raise InvalidValue(f"the command cannot be passed on: {complaint}", field="command")
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            raise InvalidValue(
                f"{name!r} is not the name of an environment variable: letters, digits and '_'",
                field="environment",
            )
        if complaint := unsendable(value):
            raise InvalidValue(f"the value of {name} cannot be passed on: {complaint}", field="environment")


def _check_limits(memory_bytes: int | None, cpus: float | None, pids_limit: int) -> None:
    if memory_bytes is not None and memory_bytes < LEAST_MEMORY_BYTES:
        raise InvalidValue(
            f"a memory limit of {memory_bytes} bytes is too small: at least {LEAST_MEMORY_BYTES}",
            field="memory",
        )
    if cpus is not None and cpus < 0.01:
        raise InvalidValue(f"{cpus} is not a number of CPUs: at least 0.01", field="cpus")
    if pids_limit < LEAST_PIDS:
        raise InvalidValue(
            f"{pids_limit} is not a limit of processes: at least {LEAST_PIDS}", field="pidsLimit"
        )


def _check_times(timeout_s: float | None, start_timeout_s: float, grace_s: float) -> None:
    if timeout_s is not None and timeout_s <= 0:
        raise InvalidValue(f"a time limit of {timeout_s} s is not above zero", field="timeout")
    if start_timeout_s <= 0:
        raise InvalidValue(f"a start limit of {start_timeout_s} s is not above zero", field="startTimeout")
    if grace_s < 0:
        raise InvalidValue(f"a grace period of {grace_s} s is below zero", field="gracePeriod")
