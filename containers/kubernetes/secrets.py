"""Secrets of the cluster as a place where secrets are kept (containers/secrets.py).

The manifest refers to a secret, and the kubelet puts it into the pod. The worker reads it only so
that the run's log can be kept free of it.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import ClassVar

from containers.kubernetes.cluster import Cluster, Refused
from containers.kubernetes.manifest import secret_reference
from containers.runtime import RuntimeUnavailable
from containers.secrets import SecretsUnavailable


class KubernetesSecrets:
    """``team/database`` is the key ``database`` of the Secret ``team`` in the namespace of the run."""

    in_runtime: ClassVar[bool] = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def read(self, name: str, team: str = "") -> str | None:
        if (reference := secret_reference(name)) is None:
            return None
        secret, key = reference
        namespace = self._cluster.options.namespace_of(team)
        try:
            found = self._cluster.find(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
        except RuntimeUnavailable as error:
            raise SecretsUnavailable(f"the secret {name!r} cannot be read: {error.message}") from None
        except Refused as refusal:
            if refusal.status != HTTPStatus.FORBIDDEN:
                raise SecretsUnavailable(f"the secret {name!r} cannot be read: {refusal}") from None
            raise SecretsUnavailable(
                f"the worker may not read the secret {name!r}: its role needs the verb get on secrets"
            ) from None
        encoded = None if found is None else (found.get("data") or {}).get(key)
        if encoded is None:
            return None
        return base64.b64decode(encoded).decode(errors="surrogateescape")
