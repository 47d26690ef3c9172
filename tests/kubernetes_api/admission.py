"""Whether a namespace takes a pod: its quota, its pod security, its service accounts; in the API's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.kubernetes_api.store import Store

Json = dict[str, Any]
ENFORCE = "pod-security.kubernetes.io/enforce"


class Admission:
    """``most_pods``: the quota of pods by namespace. ``accounts``: those beside "default"."""

    def __init__(self, store: Store) -> None:
        self.most_pods: dict[str, int] = {}
        self.accounts: set[str] = set()
        self._store = store

    def refusal(self, namespace: str, pod: Json) -> str:
        """Why it is not taken; empty where it is."""
        complaint = self._complaint(namespace, pod["spec"])
        return f'pods "{pod["metadata"]["name"]}" is forbidden: {complaint}' if complaint else ""

    def heal(self) -> None:
        self.most_pods.clear()
        self.accounts.clear()

    def _complaint(self, namespace: str, spec: Json) -> str:
        account = spec.get("serviceAccountName", "default")
        if account not in {"default", *self.accounts}:
            missing = f'serviceaccount "{account}" not found'
            return f"error looking up service account {namespace}/{account}: {missing}"
        labels = self._store.get("namespaces", "", namespace)["metadata"].get("labels") or {}
        if labels.get(ENFORCE) == "baseline" and (broken := ", ".join(_beyond_baseline(spec))):
            return f'violates PodSecurity "baseline:latest": {broken}'
        used = len(self._store.select("pods", namespace)[0])
        most = self.most_pods.get(namespace)
        if most is not None and used >= most:
            return f"exceeded quota: runs, requested: pods=1, used: pods={used}, limited: pods={most}"
        return ""


def _beyond_baseline(spec: Json) -> Iterator[str]:
    if spec.get("hostNetwork"):
        yield "host namespaces (hostNetwork=true)"
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume:
            yield f'hostPath volumes (volume "{volume["name"]}")'
    for container in spec["containers"]:
        if (container.get("securityContext") or {}).get("privileged"):
            name = container["name"]
            yield f'privileged (container "{name}" must not set securityContext.privileged=true)'
