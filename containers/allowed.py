"""What a deployment lets jobs do with their containers, and whether a job keeps to it (pure).

Asked when a job or a task is saved, and again by the worker: a row written past the services, or a worker
of a stricter deployment, changes nothing about what runs. Lists hold patterns with ``*`` and ``?``, in
which ``{team}`` is the team that owns the job. What is in no list is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from containers.fields import Errors, size_text
from containers.options import HOST_NETWORK, NO_NETWORK, ContainerOptions
from containers.pods import Path, leaves
from containers.secrets import WORD as SECRET_WORD
from containers.spec import DEFAULT_PIDS_LIMIT
from containers.volumes import Volume, VolumeKind
from scheduler_project.kernel.errors import InvalidFields
from scheduler_project.kernel.texts import shortened, shown

TEAM = "{team}"
SAFE_POD_FIELDS = (
    "metadata.labels.*",
    "spec.affinity.*",
    "spec.topologySpreadConstraints.*",
    "spec.dnsConfig.*",
    "spec.hostAliases.*",
    "spec.securityContext.fsGroup",
    "spec.securityContext.fsGroupChangePolicy",
    "spec.containers.name",
)
DANGEROUS = frozenset(
    {
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "automountServiceAccountToken",
        "capabilities",
        "csi",
        "ephemeralContainers",
        "flexVolume",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPath",
        "hostPort",
        "hostUsers",
        "image",
        "imagePullSecrets",
        "nodeName",
        "persistentVolumeClaim",
        "privileged",
        "procMount",
        "resources",
        "runtimeClassName",
        "seLinuxOptions",
        "seccompProfile",
        "secret",
        "secretKeyRef",
        "secretRef",
        "serviceAccount",
        "serviceAccountName",
        "serviceAccountToken",
        "sysctls",
    }
)
"""Fields of a pod's spec that break out of the pod, or get around another list of what is allowed. Only a
pattern allows them that names them: no ``*`` stands for them."""
_DANGEROUS_ANNOTATION = re.compile("apparmor|seccomp|security", re.IGNORECASE)
_TEAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", re.ASCII)
_PLAIN_NAMES = {
    "secrets": "letters and digits, with one '-', '_' or '.' between them, and no blank",
    "": "letters, digits, blanks, '-', '_' and '.', the first a letter or digit",
}
"""Of what the name of a team has to be to stand for ``{team}``, by list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """``volumes``: patterns of paths, and of other kinds as ``claim:NAME``, ``volume:…``, ``configMap:…``,
    ``secret:…``. A maximum of None is none. ``service_accounts``, ``networks``, …: empty allows none."""

    images: tuple[str, ...] = ("*",)
    secrets: tuple[str, ...] = (f"{TEAM}/*",)
    volumes: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    users: tuple[str, ...] = ("*",)
    service_accounts: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    pod_template: tuple[str, ...] = SAFE_POD_FIELDS
    cpus: int | None = None
    memory_bytes: int | None = None
    ephemeral_bytes: int | None = None
    gpus: int = 0
    pids: int = 4 * DEFAULT_PIDS_LIMIT

    def of_team(self, team: str | None) -> Allowed:
        """What it means for jobs of ``team``; None: of some team.

        A name is taken letter by letter, or not at all, so that no team has what is another's. Patterns
        with ``{team}`` stay as they are, and allow nothing, for a name that could be a pattern or a path
        itself, and in ``secrets`` for one that is no word of a secret's name.
        """
        return replace(
            self,
            images=_filled(self.images, team),
            secrets=_filled(self.secrets, team, SECRET_WORD),
            volumes=_filled(self.volumes, team),
            networks=_filled(self.networks, team),
            users=_filled(self.users, team),
            service_accounts=_filled(self.service_accounts, team),
            pull_secrets=_filled(self.pull_secrets, team),
        )


def check(image: str, options: ContainerOptions, allowed: Allowed, team: str | None) -> None:
    """InvalidFields, by path, for all that ``allowed`` does not let a job of ``team`` (None: of any) have.

    An empty image is the deployment's own for the type, and may always be used.
    """
    errors: Errors = {}
    for path, complaint in _complaints(image, options, allowed.of_team(team)):
        errors.setdefault(path, []).append(complaint)
    if errors:
        raise InvalidFields(errors)


def _complaints(image: str, options: ContainerOptions, allowed: Allowed) -> Iterator[tuple[str, str]]:
    yield from _listed("image", image, allowed.images, "images")
    yield from _listed("container.user", options.user, allowed.users, "users")
    yield from _listed("container.pullSecret", options.pull_secret, allowed.pull_secrets, "pull_secrets")
    accounts = allowed.service_accounts
    yield from _listed("container.serviceAccount", options.service_account, accounts, "service_accounts")
    yield from _network(options.network, allowed)
    for variable, name in options.secret_env.items():
        yield from _listed(f"container.secretEnv.{variable}", name, allowed.secrets, "secrets")
    for number, volume in enumerate(options.volumes):
        yield from _volume(f"container.volumes.{number}", volume, allowed)
    yield from _resources(options, allowed)
    yield from _pod_template(options, allowed)


def _listed(path: str, name: str, patterns: Sequence[str], what: str) -> Iterator[tuple[str, str]]:
    if not name or any(TEAM not in pattern and fnmatchcase(name, pattern) for pattern in patterns):
        return
    setting = f"PUNCTUAL_ALLOW_{what.upper()}"
    text = f"{shown(name)} is not allowed here. Allowed: {_in_words(patterns)} ({setting})."
    if any(TEAM in pattern for pattern in patterns):
        plain = _PLAIN_NAMES.get(what, _PLAIN_NAMES[""])
        text += f" This team's name cannot stand for {TEAM}: rename the team ({plain})."
    yield path, text


def _network(network: str, allowed: Allowed) -> Iterator[tuple[str, str]]:
    if network == NO_NETWORK or (network == HOST_NETWORK and HOST_NETWORK in allowed.networks):
        return
    patterns = [] if network == HOST_NETWORK else allowed.networks
    yield from _listed("container.network", network, patterns, "networks")


def _volume(path: str, volume: Volume, allowed: Allowed) -> Iterator[tuple[str, str]]:
    if volume.kind is VolumeKind.SCRATCH:
        return
    name = volume.name if volume.kind is VolumeKind.SOURCE else f"{volume.kind}:{volume.name}"
    yield from _listed(f"{path}.{volume.kind}", name, allowed.volumes, "volumes")


def _resources(options: ContainerOptions, allowed: Allowed) -> Iterator[tuple[str, str]]:
    root, bytes_of = "container.resources", size_text
    yield from _at_most(f"{root}.cpu.limit", options.cpus, allowed.cpus, "CPUS")
    yield from _at_most(f"{root}.cpu.request", options.cpus_request, allowed.cpus, "CPUS")
    memory, storage = allowed.memory_bytes, allowed.ephemeral_bytes
    yield from _at_most(f"{root}.memory.limit", options.memory_bytes, memory, "MEMORY_BYTES", bytes_of)
    request = options.memory_request_bytes
    yield from _at_most(f"{root}.memory.request", request, memory, "MEMORY_BYTES", bytes_of)
    limit, request = options.ephemeral_bytes, options.ephemeral_request_bytes
    yield from _at_most(f"{root}.ephemeralStorage.limit", limit, storage, "EPHEMERAL_BYTES", bytes_of)
    yield from _at_most(f"{root}.ephemeralStorage.request", request, storage, "EPHEMERAL_BYTES", bytes_of)
    yield from _at_most(f"{root}.gpu", options.gpus, allowed.gpus, "GPUS")
    yield from _at_most(f"{root}.pids", options.pids, allowed.pids, "PIDS")


def _at_most(
    path: str,
    amount: float | None,
    most: int | None,
    what: str,
    written: Callable[[int], object] = str,
) -> Iterator[tuple[str, str]]:
    if amount is None or most is None or amount <= most:
        return
    asked = written(int(amount)) if amount == int(amount) else amount
    yield path, f"{asked} is more than is allowed here, {written(most)} (PUNCTUAL_ALLOW_{what})."


def _pod_template(options: ContainerOptions, allowed: Allowed) -> Iterator[tuple[str, str]]:
    found = leaves(options.pod_template)
    refused = {path for path, value in found if not _may_set(path, value, allowed)}
    for path in sorted(refused):
        field = shortened(".".join(path), 200)
        allow = _in_words(allowed.pod_template)
        yield (
            f"container.podTemplate.{field}",
            f"This field is not allowed here. Allowed: {allow} (PUNCTUAL_ALLOW_POD_TEMPLATE).",
        )


def _may_set(path: Path, value: object, allowed: Allowed) -> bool:
    """A null takes away what is there, with all that is in it: only a pattern without ``*`` allows that."""
    if not path:
        return True
    whole = ".".join(path)
    if value is None:
        return whole in allowed.pod_template
    risky = [name for name in path if _is_risky(path, name)]
    return any(
        (fnmatchcase(whole, pattern) or fnmatchcase(f"{whole}.", pattern))
        and all(name in pattern for name in risky)
        for pattern in allowed.pod_template
    )


def _is_risky(path: Path, name: str) -> bool:
    if path[0] == "metadata":
        return "annotations" in path and _DANGEROUS_ANNOTATION.search(name) is not None
    return name in DANGEROUS


def _filled(
    patterns: Sequence[str], team: str | None, shape: re.Pattern[str] = _TEAM_NAME
) -> tuple[str, ...]:
    if team is None:
        return tuple(pattern.replace(TEAM, "*") for pattern in patterns)
    plain = shape.fullmatch(team) is not None
    return tuple(pattern.replace(TEAM, team) if plain else pattern for pattern in patterns)


def _in_words(patterns: Sequence[str]) -> str:
    return shortened(", ".join(patterns), 400) if patterns else "none"
