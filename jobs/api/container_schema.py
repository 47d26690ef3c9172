"""What a job says of its container as JSON schema: what containers/options.py reads, and its normal form."""

from __future__ import annotations

import re
from typing import Any

from containers.fields import BINARY_UNITS, DECIMAL_UNITS, MOST_BYTES, MOST_CPUS, MOST_ITEMS
from containers.options import MOST_GPUS, MOST_PIDS, RESERVED
from containers.secrets import NAME as SECRET_NAME
from containers.spec import LEAST_PIDS, PullPolicy
from containers.volumes import EFFECTS, VolumeKind
from containers.words import LABEL_NAME, LABEL_VALUE, OBJECT_NAME
from executions.api.reads import named, nullable
from jobs.api.schedule_schema import LENGTH

Json = dict[str, Any]
VARIABLE = rf"^(?!{'|'.join(RESERVED)})[A-Za-z_][A-Za-z0-9_]*$"


def _whole(pattern: re.Pattern[str], longest: int) -> Json:
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$", "maxLength": longest}


def _object(**properties: Json) -> Json:
    """Each may be null, which is as good as left out."""
    fields = {
        name: {
            **nullable({k: v for k, v in schema.items() if k != "description"}),
            "description": schema["description"],
        }
        for name, schema in properties.items()
    }
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _pairs(names: Json, values: Json) -> Json:
    return {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": values,
        "maxProperties": MOST_ITEMS,
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items, "maxItems": MOST_ITEMS}


def _saying(schema: Json, says: str) -> Json:
    return {**schema, "description": says}


_PATH: Json = {
    "type": "string",
    "pattern": "^/$|^(/[^/:,]+)+$",
    "format": "container-path",
    "maxLength": 4096,
}
_OBJECT_NAME = _whole(OBJECT_NAME, 253)
_LABEL: Json = {"anyOf": [_whole(LABEL_VALUE, 63), {"const": ""}]}
_SIZE: Json = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_BYTES},
        {
            "type": "string",
            "format": "size",
            "pattern": f"^[0-9]{{1,18}}({'|'.join([*BINARY_UNITS, *DECIMAL_UNITS])})?$",
        },
    ],
    "examples": ["512Mi"],
}
_CPUS: Json = {
    "anyOf": [
        {"type": "number", "minimum": 0.01, "maximum": MOST_CPUS, "multipleOf": 0.001},
        {"type": "string", "format": "cpus", "pattern": r"^([0-9]{1,6}(\.[0-9]{1,3})?|[0-9]{1,7}m)$"},
    ],
    "examples": [0.5, "500m"],
}


def _amounts(amount: Json, unit: str) -> Json:
    return _object(
        request=_saying(amount, f"What is reserved, in {unit}; at most the limit."),
        limit=_saying(amount, f"The most, in {unit}."),
    )


_RESOURCES = _object(
    cpu=_saying(_amounts(_CPUS, "CPUs, to the thousandth"), "CPUs."),
    memory=_saying(_amounts(_SIZE, "bytes or with a unit, the limit at least 6Mi"), "Memory."),
    ephemeralStorage=_saying(_amounts(_SIZE, "bytes or with a unit"), "Disk that goes with the run."),
    gpu=_saying({"type": "integer", "minimum": 0, "maximum": MOST_GPUS}, "GPUs."),
    pids=_saying({"type": "integer", "minimum": LEAST_PIDS, "maximum": MOST_PIDS}, "Processes at once."),
)
_KINDS: dict[VolumeKind, Json] = {
    VolumeKind.SOURCE: _saying(_PATH, "A folder or file of the host."),
    VolumeKind.VOLUME: _saying(
        {"type": "string", "pattern": "^[a-zA-Z0-9][a-zA-Z0-9_.-]+$", "maxLength": 253},
        "A volume of the engine.",
    ),
    VolumeKind.CLAIM: _saying(_OBJECT_NAME, "A PersistentVolumeClaim."),
    VolumeKind.CONFIG_MAP: _saying(_OBJECT_NAME, "A ConfigMap, as files."),
    VolumeKind.SECRET: _saying(_OBJECT_NAME, "A Secret, as files."),
    VolumeKind.SCRATCH: _saying(
        _SIZE, "An empty folder of the run's own; its size, in bytes or with a unit."
    ),
}
_VOLUME: Json = {
    **_object(
        **{str(kind): schema for kind, schema in _KINDS.items()},
        target=_saying(
            {**_PATH, "not": {"pattern": "^/$|^/(proc|sys|dev)(/(?!shm$)|$)"}},
            "Where it is in the container.",
        ),
        readOnly=_saying({"type": "boolean"}, "Whether it can only be read; default true, of scratch false."),
    ),
    "required": ["target"],
    "description": "What is mounted: exactly one of " + ", ".join(f"`{kind}`" for kind in VolumeKind) + ".",
}
_TOLERATION = _saying(
    _object(
        key=_saying(
            {"anyOf": [_whole(LABEL_NAME, 317), {"const": ""}]},
            "The key of the taint; empty with `Exists`: all.",
        ),
        operator=_saying(
            {"type": "string", "enum": ["Equal", "Exists"]}, "How it is compared; default `Equal`."
        ),
        value=_saying(_LABEL, "The value, with `Equal`."),
        effect=_saying({"type": "string", "enum": ["", *EFFECTS]}, "Which effect; empty: all."),
        tolerationSeconds=_saying(
            {"type": "integer", "minimum": 0, "maximum": 10**9}, "For how long, in seconds, with `NoExecute`."
        ),
    ),
    "A taint that is tolerated, as in a Kubernetes pod.",
)
CONTAINER: Json = named(
    "Container",
    {
        **_object(
            workingDir=_saying(_PATH, "The folder that the command starts in."),
            secretEnv=_saying(
                _pairs({"pattern": VARIABLE}, _whole(SECRET_NAME, 253)),
                "Names of secrets, by the variables that get their values.",
            ),
            resources=_saying(_RESOURCES, "What it may use."),
            user=_saying(
                {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$",
                    "maxLength": 64,
                },
                "A user's name or number, and a group's after a `:`.",
            ),
            readOnlyRoot=_saying(
                {"type": "boolean"}, "Whether its own files can only be read; default true."
            ),
            volumes=_saying(_list(_VOLUME), "What is mounted."),
            network=_saying(
                {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "maxLength": 128},
                "A network, `host`, or `none`.",
            ),
            labels=_saying(
                _pairs({**_whole(LABEL_NAME, 317), "not": {"pattern": "^punctual"}}, _LABEL),
                "Labels of its own.",
            ),
            pullPolicy=_saying(
                {"type": "string", "enum": [str(item) for item in PullPolicy]},
                "When the image is fetched; default `IfNotPresent`.",
            ),
            pullSecret=_saying(_OBJECT_NAME, "The Secret with which it is fetched."),
            nodeSelector=_saying(_pairs(_whole(LABEL_NAME, 317), _LABEL), "Labels that its node has."),
            tolerations=_saying(_list(_TOLERATION), "Taints that are tolerated."),
            serviceAccount=_saying(_OBJECT_NAME, "The Kubernetes service account that it runs as."),
            gracePeriod=_saying(LENGTH, "Between SIGTERM and SIGKILL, at most 1h."),
            startTimeout=_saying(LENGTH, "The longest wait for its start, 1s to 1d."),
            podTemplate=_saying(
                {
                    "type": "object",
                    "properties": {
                        "metadata": {"type": "object", "description": "As in Kubernetes."},
                        "spec": {"type": "object", "description": "As in Kubernetes."},
                    },
                    "additionalProperties": False,
                },
                "A partial pod template, for what has no field here.",
            ),
        ),
        "description": "What a job's container needs. What the deployment does not allow is refused.",
    },
)
