"""What a job says of its container beside image, command, environment and parameters (pure).

``container`` in REST, in files, in the admin and in a RunSpec is this in JSON. ``read_options`` takes
what people write and names everything that is wrong by its path (``container.resources.memory.limit``);
``to_json`` gives the one normal form, without what is not set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from containers.fields import (
    Errors,
    Fields,
    Reader,
    a_line,
    choice,
    cpus,
    cpus_number,
    flag,
    matching,
    path,
    size,
    size_text,
    whole,
)
from containers.pods import OWN_LABELS, read_pod_template
from containers.secrets import NAME as SECRET_NAME
from containers.secrets import NAME_HELP as SECRET_NAME_HELP
from containers.spec import LEAST_MEMORY_BYTES, LEAST_PIDS, PullPolicy
from containers.volumes import Toleration, Volume, read_toleration, read_volume
from containers.words import LABEL_HELP, LABEL_NAME, LABEL_VALUE, OBJECT_HELP, OBJECT_NAME
from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown

RESERVED = ("PUNCTUAL_", "PARAM_")
"""How the names of variables begin that are the scheduler's and the parameters'."""
NO_NETWORK = "none"
HOST_NETWORK = "host"
LONGEST_GRACE = timedelta(hours=1)
LONGEST_START = timedelta(days=1)
MOST_GPUS = 1024
MOST_PIDS = 4_194_304

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?", re.ASCII)
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)

FIELDS = (
    "workingDir",
    "secretEnv",
    "resources",
    "user",
    "readOnlyRoot",
    "volumes",
    "network",
    "labels",
    "pullPolicy",
    "pullSecret",
    "nodeSelector",
    "tolerations",
    "serviceAccount",
    "gracePeriod",
    "startTimeout",
    "podTemplate",
)
RESOURCES = ("cpu", "memory", "ephemeralStorage", "gpu", "pids")
LIMITS = ("request", "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOptions:
    """Nothing set: the deployment's and the runtime's defaults, which are the safe ones.

    ``secret_env``: names of secrets by the variables that get their values. ``…_bytes`` and ``cpus`` are
    limits, ``…_request…`` what is reserved. ``pull_policy`` empty: IfNotPresent.
    """

    working_dir: str = ""
    secret_env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    cpus_request: float | None = None
    memory_bytes: int | None = None
    memory_request_bytes: int | None = None
    ephemeral_bytes: int | None = None
    ephemeral_request_bytes: int | None = None
    gpus: int = 0
    pids: int | None = None
    user: str = ""
    read_only_root: bool = True
    volumes: tuple[Volume, ...] = ()
    network: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    pull_policy: str = ""
    pull_secret: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    service_account: str = ""
    grace: timedelta | None = None
    start_timeout: timedelta | None = None
    pod_template: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The normal form: what ``read_options`` reads as the same options, without what is not set."""
        written = {
            "workingDir": self.working_dir,
            "secretEnv": _sorted(self.secret_env),
            "resources": self._resources(),
            "user": self.user,
            "readOnlyRoot": None if self.read_only_root else False,
            "volumes": [volume.to_json() for volume in self.volumes],
            "network": self.network,
            "labels": _sorted(self.labels),
            "pullPolicy": self.pull_policy,
            "pullSecret": self.pull_secret,
            "nodeSelector": _sorted(self.node_selector),
            "tolerations": [toleration.to_json() for toleration in self.tolerations],
            "serviceAccount": self.service_account,
            "gracePeriod": _length(self.grace),
            "startTimeout": _length(self.start_timeout),
            "podTemplate": dict(self.pod_template),
        }
        return {name: value for name, value in written.items() if value is False or value}

    def _resources(self) -> dict[str, Any]:
        written: dict[str, Any] = {
            "cpu": _amounts(self.cpus_request, self.cpus, cpus_number),
            "memory": _amounts(self.memory_request_bytes, self.memory_bytes, size_text),
            "ephemeralStorage": _amounts(self.ephemeral_request_bytes, self.ephemeral_bytes, size_text),
            "gpu": self.gpus,
            "pids": self.pids,
        }
        return {name: value for name, value in written.items() if value}


def read_options(given: object, root: str = "container") -> ContainerOptions:
    """The options that ``given``, a JSON value, states. InvalidFields: all that is wrong, by its path."""
    errors: Errors = {}
    fields = Fields(given, root, FIELDS, errors)
    options = ContainerOptions(
        working_dir=fields.get("workingDir", path, ""),
        secret_env=fields.pairs("secretEnv", _variable, _secret_name),
        **_read_resources(fields.within("resources", RESOURCES)),
        user=fields.get("user", _user, ""),
        read_only_root=fields.get("readOnlyRoot", flag, True),
        volumes=_read_volumes(fields),
        network=fields.get("network", _network, ""),
        labels=fields.pairs("labels", _label_name, _label_value),
        pull_policy=fields.get("pullPolicy", choice(PullPolicy), ""),
        pull_secret=fields.get("pullSecret", _object_name, ""),
        node_selector=fields.pairs("nodeSelector", _selector_name, _label_value),
        tolerations=tuple(read_toleration(*item, errors) for item in fields.items("tolerations")),
        service_account=fields.get("serviceAccount", _object_name, ""),
        grace=fields.get("gracePeriod", _duration(timedelta(0), LONGEST_GRACE), None),
        start_timeout=fields.get("startTimeout", _duration(timedelta(seconds=1), LONGEST_START), None),
        pod_template=fields.get("podTemplate", read_pod_template, {}),
    )
    if errors:
        raise InvalidFields(errors)
    return options


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with what ``over`` says in its place: objects name by name, everything else as a whole."""
    both = {
        name: merged(base[name], over[name])
        for name in base.keys() & over.keys()
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping)
    }
    return {**base, **over, **both}


def by_path(value: Any, path: str = "container") -> Iterator[tuple[str, Any]]:
    """What the normal form says, each thing by its path: ``container.resources.gpu``, 2."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from by_path(item, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from by_path(item, f"{path}.{number}")
    elif value or not isinstance(value, Mapping | list):
        yield path, value


def _read_resources(fields: Fields) -> dict[str, Any]:
    cpu, memory, storage = (fields.within(name, LIMITS) for name in RESOURCES[:3])
    return {
        **_read_amounts(cpu, cpus, "cpus", "cpus_request", cpus_number),
        **_read_amounts(memory, size(LEAST_MEMORY_BYTES), "memory_bytes", "memory_request_bytes", size_text),
        **_read_amounts(storage, size(), "ephemeral_bytes", "ephemeral_request_bytes", size_text),
        "gpus": fields.get("gpu", whole(0, MOST_GPUS), 0),
        "pids": fields.get("pids", whole(LEAST_PIDS, MOST_PIDS), None),
    }


def _read_amounts(
    fields: Fields, read: Reader[Any], limit_name: str, request_name: str, written: Reader[Any]
) -> dict[str, Any]:
    request = fields.get("request", read, None)
    limit = fields.get("limit", read, None)
    if request is not None and limit is not None and request > limit:
        fields.complain("request", f"{written(request)} is more than the limit, {written(limit)}.")
    return {limit_name: limit, request_name: request}


def _read_volumes(fields: Fields) -> tuple[Volume, ...]:
    volumes: dict[str, Volume] = {}
    for place, item in fields.items("volumes"):
        volume = read_volume(place, item, fields.errors)
        if volume is None:
            continue
        if volume.target in volumes:
            fields.errors[f"{place}.target"] = [f"{shown(volume.target)} is the target of two volumes."]
        volumes[volume.target] = volume
    return tuple(volumes.values())


def _variable(value: object) -> str:
    name = a_line(value)
    if not _VARIABLE.fullmatch(name):
        raise InvalidValue(f"{shown(name)} is not a variable's name: letters, digits and '_'.")
    if name.startswith(RESERVED):
        raise InvalidValue(f"Names with {' and '.join(RESERVED)} are the scheduler's and the parameters'.")
    return name


def _label_name(value: object) -> str:
    name = _selector_name(value)
    if name.startswith(OWN_LABELS):
        raise InvalidValue(f"Labels that begin with {OWN_LABELS!r} are the scheduler's.")
    return name


def _label_value(value: object) -> str:
    return "" if value == "" else _label_text(value)


def _duration(least: timedelta, most: timedelta) -> Reader[timedelta | None]:
    def read(value: object) -> timedelta:
        length = parse_duration(value, minimum=least)
        if length > most:
            raise InvalidValue(f"{shown(value)} is longer than {format_duration(most)}.")
        return length

    return read


_secret_name = matching(SECRET_NAME, SECRET_NAME_HELP)
_user = matching(_USER, "a user's name or number, and a group's after a ':', such as 1000:1000", 64)
_network = matching(_NETWORK, f"the name of a network, {HOST_NETWORK!r}, or {NO_NETWORK!r} for none", 128)
_object_name = matching(OBJECT_NAME, OBJECT_HELP)
_selector_name = matching(LABEL_NAME, f"a label's name: {LABEL_HELP}", 253 + 1 + 63)
_label_text = matching(LABEL_VALUE, LABEL_HELP, 63)


def _sorted(names: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(names.items()))


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)


def _amounts(request: Any, limit: Any, written: Reader[Any]) -> dict[str, Any]:
    amounts = {"request": request, "limit": limit}
    return {name: written(amount) for name, amount in amounts.items() if amount is not None}
