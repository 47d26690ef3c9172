"""What a run may have mounted, and which taints it tolerates: values, and how they read in JSON (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from containers.fields import Errors, Fields, Reader, choice, flag, matching, path, size, size_text, whole
from containers.words import LABEL_HELP, LABEL_NAME, LABEL_VALUE, OBJECT_HELP, OBJECT_NAME
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

_ENGINE_VOLUME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", re.ASCII)
_NOT_COVERED = ("/", "/proc", "/sys", "/dev")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class VolumeKind(StrEnum):
    """Where the content comes from; the value is the name of the field in JSON."""

    SOURCE = "source"  # an absolute path of the host: bind mount, hostPath
    VOLUME = "volume"  # a named volume of the Docker engine
    CLAIM = "claim"  # a PersistentVolumeClaim
    CONFIG_MAP = "configMap"
    SECRET = "secret"  # noqa: S105 -- a Kubernetes Secret, as files
    SCRATCH = "scratch"  # empty, the run's own, gone with it; what the field holds is its size


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """``name``: of what ``kind`` says (a path where it is SOURCE); empty for SCRATCH, which alone has
    ``size_bytes`` and is never read-only. ``target``: the absolute path in the container."""

    kind: VolumeKind
    target: str
    name: str = ""
    read_only: bool = True
    size_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        content = self.name if self.size_bytes is None else size_text(self.size_bytes)
        writable = not self.read_only and self.kind is not VolumeKind.SCRATCH
        return {str(self.kind): content, "target": self.target} | ({"readOnly": False} if writable else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """As in a Kubernetes pod; ``seconds`` is tolerationSeconds. Empty ``key`` with Exists: every taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        written = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.seconds,
        }
        return {name: value for name, value in written.items() if value or value == 0}


def read_volume(place: str, given: object, errors: Errors) -> Volume | None:
    """The volume at ``place``, or None where it is none; what is wrong with it goes into ``errors``."""
    before = len(errors)
    fields = Fields(given, place, (*VolumeKind, "target", "readOnly"), errors)
    named = {kind: fields.get(kind, _content[kind], None) for kind in VolumeKind}
    contents = {kind: content for kind, content in named.items() if content is not None}
    target = fields.get("target", _target, "")
    read_only = fields.get("readOnly", flag, VolumeKind.SCRATCH not in contents)
    if len(errors) == before:
        _complain_together(fields, contents, target, read_only)
    if len(errors) > before:
        return None
    [(kind, content)] = contents.items()
    if kind is VolumeKind.SCRATCH:
        return Volume(kind=kind, target=target, read_only=False, size_bytes=int(content))
    return Volume(kind=kind, target=target, name=str(content), read_only=read_only)


def _complain_together(fields: Fields, contents: dict[VolumeKind, Any], target: str, read_only: bool) -> None:
    if len(contents) != 1:
        fields.complain("", f"A volume has exactly one of {', '.join(VolumeKind)}.")
    if not target:
        fields.complain("target", "This field is required.")
    if VolumeKind.SCRATCH in contents and read_only:
        fields.complain("readOnly", "A scratch folder that is only read is of no use.")


def read_toleration(place: str, given: object, errors: Errors) -> Toleration:
    """The toleration at ``place``; what is wrong with it goes into ``errors``."""
    fields = Fields(given, place, ("key", "operator", "value", "effect", "tolerationSeconds"), errors)
    found = Toleration(
        key=fields.get("key", _blank_or(_label_name), ""),
        operator=fields.get("operator", choice(("Equal", "Exists")), "Equal"),
        value=fields.get("value", _blank_or(_label_value), ""),
        effect=fields.get("effect", _blank_or(choice(EFFECTS)), ""),
        seconds=fields.get("tolerationSeconds", whole(0, 10**9), None),
    )
    if found.operator == "Exists" and found.value:
        fields.complain("value", "With the operator Exists there is none.")
    if found.operator == "Equal" and not found.key:
        fields.complain("key", "It is required, except with the operator Exists, which is then for all.")
    if found.seconds is not None and found.effect != "NoExecute":
        fields.complain("tolerationSeconds", "It is for the effect NoExecute only.")
    return found


def _blank_or(read: Reader[str]) -> Reader[str]:
    return lambda value: "" if value == "" else read(value)


def _target(value: object) -> str:
    target = path(value)
    below = target.startswith(tuple(f"{place}/" for place in _NOT_COVERED[1:]))
    if target in _NOT_COVERED or (below and target != _SHARED_MEMORY):
        raise InvalidValue(
            f"{shown(target)} is not a target for a volume: {', '.join(_NOT_COVERED)} are the system's."
        )
    return target


_object_name = matching(OBJECT_NAME, OBJECT_HELP)
_label_name = matching(LABEL_NAME, LABEL_HELP, 253 + 1 + 63)
_label_value = matching(LABEL_VALUE, LABEL_HELP, 63)
_content: dict[VolumeKind, Reader[Any]] = {
    VolumeKind.SOURCE: path,
    VolumeKind.VOLUME: matching(_ENGINE_VOLUME, "the name of a volume: letters, digits, '_', '.' and '-'"),
    VolumeKind.CLAIM: _object_name,
    VolumeKind.CONFIG_MAP: _object_name,
    VolumeKind.SECRET: _object_name,
    VolumeKind.SCRATCH: size(),
}
