"""A node for each pod: by selector, taints and room."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": 1e-3}
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]*)")


@dataclass
class Node:
    name: str
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)
    room: dict[str, str] = field(
        default_factory=lambda: {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1000Gi"}
    )

    def refusal(self, pod: Json) -> str:
        """Why it does not take the pod; empty where it does."""
        spec = pod["spec"]
        if any(self.labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
            return "1 node(s) didn't match Pod's node affinity/selector"
        for taint in self.taints:
            if not any(_tolerates(one, taint) for one in spec.get("tolerations") or ()):
                return f"1 node(s) had untolerated taint(s) {{{taint['key']}: {taint.get('value', '')}}}"
        for name, amount in _wanted(spec).items():
            if amount > quantity(self.room.get(name, "0")):
                return f"1 Insufficient {name}"
        return ""


def unschedulable(node: Node, refusal: str) -> Json:
    """The condition of a pod that no node takes."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/1 nodes are available: {refusal}. preemption: 0/1 nodes are available.",
    }


def quantity(text: str) -> float:
    """``512Mi`` in bytes, ``250m`` in CPUs."""
    found = _QUANTITY.fullmatch(text)
    assert found is not None, f"{text!r} is no quantity"
    return float(found[1]) * UNITS[found[2]]


def _wanted(spec: Json) -> dict[str, float]:
    total: dict[str, float] = {}
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for name, text in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            total[name] = total.get(name, 0.0) + quantity(text)
    return total


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    same_key = bool(toleration.get("key") == taint["key"])
    return same_key and toleration.get("value", "") == taint.get("value", "")
