"""deploy/kubernetes: what a deployment applies as it is (the role is held to what is used elsewhere)."""

from __future__ import annotations

from typing import Any

from tests.kubernetes_api.cluster import MANIFESTS, manifests


def find(kind: str, name: str) -> Any:
    return next(one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name))


def test_what_a_worker_refers_to_is_in_the_folder_or_said_to_be_missing() -> None:
    pod = find("Deployment", "punctual-worker")["spec"]["template"]["spec"]
    claims = [
        one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"] if "persistentVolumeClaim" in one
    ]
    assert [find("PersistentVolumeClaim", name)["metadata"]["namespace"] for name in claims] == ["punctual"]
    assert find("ServiceAccount", pod["serviceAccountName"])
    (container,) = pod["containers"]
    (source,) = container["envFrom"]
    assert f"create secret generic {source['secretRef']['name']}" in (MANIFESTS / "worker.yaml").read_text()
    tag = container["image"].partition(":")[2]
    assert tag not in ("", "latest")  # those are pulled at each start


def test_each_namespace_of_runs_is_told_what_it_needs() -> None:
    runs = find("Role", "punctual-worker")["metadata"]["namespace"]
    assert find("NetworkPolicy", "no-network")["metadata"]["namespace"] == runs
    for name in ("role.yaml", "network.yaml"):
        assert "PUNCTUAL_KUBERNETES_TEAM_NAMESPACES" in (MANIFESTS / name).read_text()


def test_no_service_of_the_namespace_gets_into_the_settings_of_a_worker() -> None:
    pod = find("Deployment", "punctual-worker")["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
