"""What the worker may do in a namespace, asked of the cluster before a run finds out."""

from __future__ import annotations

from containers.kubernetes.cluster import Cluster
from containers.runtime import RuntimeUnavailable

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# All that containers/kubernetes asks for; deploy/kubernetes/role.yaml grants it with BY_NAME, and no more.
NEEDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("batch", "jobs", ("create", "get", "list", "watch", "patch", "delete")),
    ("", "pods", ("list", "watch", "delete")),
    ("", "pods/log", ("get",)),
    ("", "events", ("list",)),
    ("", "namespaces", ("get",)),
)
# Granted for some names only, perhaps, or not at all where runs have no secrets of the cluster: not asked
# for here. A run whose secret may not be read says so.
BY_NAME: tuple[tuple[str, str, tuple[str, ...]], ...] = (("", "secrets", ("get",)),)


def check_rights(cluster: Cluster, namespace: str) -> None:
    """Raises RuntimeUnavailable, naming what is missing and what grants it."""
    missing = [
        f"{verb} {resource}"
        for group, resource, verbs in NEEDED
        for verb in verbs
        if not _may(cluster, namespace, (group, resource, verb))
    ]
    if missing:
        raise RuntimeUnavailable(
            f"this worker may not {', '.join(missing)} in the namespace {namespace!r}:"
            " deploy/kubernetes/role.yaml grants what it needs"
        )


def _may(cluster: Cluster, namespace: str, wanted: tuple[str, str, str]) -> bool:
    group, resource, verb = wanted
    kind, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": kind}
    if part:
        attributes["subresource"] = part
    if kind == "namespaces":
        attributes["name"] = namespace
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(cluster.create(REVIEWS, review)["status"]["allowed"])
