"""Label and field selectors, of the forms ``a=b,c!=d,e,!f,g in (h,i)`` and ``metadata.name=x``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Rule = Callable[[dict[str, str]], bool]
_SET = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin)\s+\((?P<values>[^)]*)\)")


class Selector:
    def __init__(self, labels: str = "", fields: str = "") -> None:
        self._labels = [_rule(part) for part in _parts(labels)]
        self._fields = [part.replace("==", "=").partition("=")[::2] for part in _parts(fields)]

    def matches(self, thing: Json) -> bool:
        labels = thing["metadata"].get("labels") or {}
        return all(rule(labels) for rule in self._labels) and all(
            (str(_field(thing, path.removesuffix("!"))) == value) is not path.endswith("!")
            for path, value in self._fields
        )


def _parts(text: str) -> list[str]:
    """Split at the commas that are not between brackets."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _rule(part: str) -> Rule:
    if found := _SET.fullmatch(part):
        key, wanted = found["key"], {value.strip() for value in found["values"].split(",")}
        inside = found["word"] == "in"
        return lambda labels: (labels.get(key) in wanted) is inside
    if "!=" in part:
        key, _, value = part.partition("!=")
        return lambda labels: labels.get(key) != value
    if "=" in part:
        key, value = part.replace("==", "=").split("=", 1)
        return lambda labels: labels.get(key) == value
    if part.startswith("!"):
        return lambda labels: part[1:] not in labels
    return lambda labels: part in labels


def _field(thing: Json, path: str) -> Any:
    value: Any = thing
    for name in path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    return value
