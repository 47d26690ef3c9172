"""A partial pod template laid over a whole one, as a strategic merge patch is; pure.

Objects are merged field by field; null removes a field. Lists whose items have a key are merged by
it; of the others the partial one takes the place of the whole one. Containers without a name, and
the one called ``run``, are the run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RUN = "run"
# The keys of lists in a PodTemplateSpec that are merged item by item, as the API reference has them.
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
}


def merged(whole: Any, partial: Any, field: str = "") -> Any:
    """``whole`` with ``partial`` laid over it; neither is changed."""
    if isinstance(whole, Mapping) and isinstance(partial, Mapping):
        return _objects(whole, partial)
    if isinstance(whole, list) and isinstance(partial, list) and (key := MERGE_KEYS.get(field)):
        return _lists(whole, partial, key, default=RUN if field == "containers" else None)
    return _without_nulls(partial)


def _objects(whole: Mapping[str, Any], partial: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(whole)
    for name, value in partial.items():
        if value is None:
            result.pop(name, None)
        elif name in result:
            result[name] = merged(result[name], value, name)
        else:
            result[name] = _without_nulls(value)
    return result


def _lists(whole: list[Any], partial: list[Any], key: str, default: str | None) -> list[Any]:
    result = list(whole)
    for item in partial:
        if default is not None and key not in item:
            item = {key: default, **item}  # noqa: PLW2901 -- the same item, with its name
        place = next((n for n, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if place is None:
            result.append(_without_nulls(item))
        else:
            result[place] = merged(result[place], item)
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
