"""The stand-in as a whole, and what befalls it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from scheduler_project.kernel.clock import monotonic
from tests.kubernetes_api.access import ADMIN, Access
from tests.kubernetes_api.admission import Admission
from tests.kubernetes_api.controllers import Controllers, set_condition
from tests.kubernetes_api.faults import Faults
from tests.kubernetes_api.http import Api, Server
from tests.kubernetes_api.kubelet import Blow, Kubelet, pods_of
from tests.kubernetes_api.scheduling import Node
from tests.kubernetes_api.store import Json, Store

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deploy" / "kubernetes"
NAMESPACE = "punctual-runs"
WORKER = "system:serviceaccount:punctual:punctual-worker"
WORKER_TOKEN = "token-of-the-worker"
PATIENCE_S = 20.0


class StandInCluster:
    """One cluster of one node. ``folder``: for the processes of its pods; its path must be short."""

    def __init__(self, folder: Path, namespaces: Iterable[str] = (NAMESPACE,)) -> None:
        self.folder = folder
        self.store = Store()
        self.faults = Faults()
        self.admission = Admission(self.store)
        self.node = Node("node-1")
        self.access = Access({WORKER_TOKEN: WORKER, "token-of-the-admin": ADMIN})
        self.access.bind(manifests())
        for name in ("kube-system", *namespaces):
            self.add_namespace(name)
        self.kubelet = Kubelet(self.store, self.faults, self.node, folder)
        self.controllers = Controllers(self.store, self.admission)
        self.server = Server(Api(self.store, self.access, self.faults, self.kubelet.logs))

    @property
    def memory_enforcement(self) -> str:
        return self.kubelet.memory_enforcement

    def kubeconfig(self, token: str = WORKER_TOKEN) -> Path:
        """The path of a file for KUBECONFIG, of a user with that token."""
        path = self.folder / f"{token}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "stand-in", "cluster": {"server": self.server.url}}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "stand-in",
                    "context": {"cluster": "stand-in", "user": "user", "namespace": NAMESPACE},
                }
            ],
            "current-context": "stand-in",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def add_namespace(self, name: str) -> None:
        """A namespace, in which the worker may do what it may in the first one of runs."""
        if self.store.find("namespaces", "", name) is None:
            labels = _labels_of_namespaces().get(name, {})
            self.store.create("namespaces", "", {"metadata": {"name": name, "labels": labels}})
            self.access.extend(WORKER, NAMESPACE, name)

    def add_secret(self, name: str, namespace: str = NAMESPACE, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        self.store.create("secrets", namespace, {"metadata": {"name": name}, "data": data})

    def pod(self, name: str) -> Json | None:
        """The pod of the Job of that name."""
        return next(pods_of(self.store, name), None)

    def evict(self, name: str, *, own_fault: bool = False) -> None:
        """End a pod as its kubelet does under pressure, or where it took more disk than its limit."""
        pod = self._pod(name)
        if own_fault:
            message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
        else:
            message = "The node was low on resource: ephemeral-storage."
            self._disrupt(pod, "TerminationByKubelet", message)
        self.kubelet.blows[name] = Blow("Evicted", message)

    def preempt(self, name: str) -> None:
        """As the scheduler does for a pod of a higher priority."""
        self._disrupt(
            self._pod(name),
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        self.delete_pod(name)

    def lose_node(self, name: str) -> None:
        """The node falls silent; after a while its pods are marked for deletion, which nobody carries out."""
        self.faults.silent_nodes.add(self.node.name)
        self._disrupt(
            self._pod(name), "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        )
        self.store.delete("pods", NAMESPACE, self._pod(name)["metadata"]["name"], {"gracePeriodSeconds": 1})

    def delete_pod(self, name: str) -> None:
        """As somebody with kubectl does."""
        self.store.delete("pods", NAMESPACE, self._pod(name)["metadata"]["name"], {})

    def delete_job(self, name: str) -> None:
        self.store.delete("jobs", NAMESPACE, name, {"propagationPolicy": "Background"})

    def close(self) -> None:
        self.server.close()
        self.controllers.close()
        self.kubelet.close()

    def _pod(self, name: str) -> Json:
        found = self.pod(name)
        assert found is not None, f"there is no pod of {name}"
        return found

    def _disrupt(self, pod: Json, reason: str, message: str) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        set_condition(self.store, "pods", pod, condition)

    def wait_until_empty(self) -> None:
        """Until no pod is left, as after tests that forgot their runs."""
        deadline, version = monotonic() + PATIENCE_S, 0
        while self.store.everywhere("pods"):
            assert monotonic() < deadline, self.store.everywhere("pods")
            version = self.store.wait(version, 0.1)


def _labels_of_namespaces() -> dict[str, dict[str, str]]:
    found = (thing["metadata"] for thing in manifests() if thing["kind"] == "Namespace")
    return {metadata["name"]: metadata.get("labels", {}) for metadata in found}


def manifests() -> list[Any]:
    """All of deploy/kubernetes."""
    return [
        thing for path in sorted(MANIFESTS.glob("*.yaml")) for thing in yaml.safe_load_all(path.read_text())
    ]
