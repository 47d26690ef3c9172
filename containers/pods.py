"""A partial pod template: for what we do not model, on Kubernetes only (pure).

Read here is only that it is one; which of its fields a deployment allows is the matter of allowed.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import outgrows, shown, unsendable

MOST_CHARACTERS = 64_000
DEEPEST = 24
_LEAST_TO_CHOSEN = 2  # metadata.labels.NAME, spec.nodeSelector.NAME
OWN_LABELS = "punctual"
"""How the names of labels begin that are the scheduler's."""
Path = tuple[str, ...]


def read_pod_template(value: object) -> dict[str, Any]:
    """InvalidValue for what is no object of ``metadata`` and ``spec``, too large, too deep, or no JSON."""
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{shown(value)} is not an object of metadata and spec.")
    if unknown := [name for name in value if name not in ("metadata", "spec")]:
        raise InvalidValue(f"{shown(unknown[0])} is not a field of a pod template. Allowed: metadata, spec.")
    if outgrows(value, MOST_CHARACTERS):
        raise InvalidValue(f"More than {MOST_CHARACTERS} characters.")
    _check_texts(value)
    try:
        read: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError) as error:
        raise InvalidValue(f"Not JSON: {error}.") from error
    return read


def _check_texts(template: Mapping[str, Any]) -> None:
    for path, leaf in leaves(template):
        _check_names(path)
        if path[:2] == ("metadata", "labels") and path[-1].startswith(OWN_LABELS):
            raise InvalidValue(f"{shown('.'.join(path))}: such labels are the scheduler's.")
        for text in (*path, leaf):
            if isinstance(text, str) and (complaint := unsendable(text)):
                raise InvalidValue(f"{shown('.'.join(path))}: {complaint}")


def _check_names(path: Path) -> None:
    """A dot in the name of a field could be taken for the one between two fields, and what is allowed for
    what is not. Only names that people choose (labels, annotations, resources) have some: they come last."""
    fields = path[:-1] if len(path) > _LEAST_TO_CHOSEN else path
    if dotted := next((name for name in fields if "." in name), None):
        raise InvalidValue(f"{shown(dotted)} is not the name of a field: there is a '.' in it.")


def leaves(template: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every value that is no object and no list, or is an empty one, with the names that lead to it.

    Items of a list have no name of their own: ``spec.containers.image`` is that of any container.
    """
    waiting: list[tuple[Path, int, Any]] = [((), 0, template)]
    while waiting:
        path, depth, value = waiting.pop()
        if depth > DEEPEST:
            raise InvalidValue(f"It is nested more than {DEEPEST} deep.")
        if isinstance(value, Mapping) and value:
            waiting += [((*path, _name(name)), depth + 1, item) for name, item in value.items()]
        elif isinstance(value, list) and value:
            waiting += [(path, depth + 1, item) for item in value]
        else:
            yield path, value


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidValue(f"{shown(name)} is not a name: names are texts.")
    return name
