"""What is asked of the cluster for one attempt: one Job with one pod, tried once; pure.

The deadline of the Job is a net for runs that every worker has left: it covers the start, the time
limit and the grace, and a worker that watches is always earlier. A disruption ends the Job too:
whether a run starts again is not for the Job's controller to decide.
"""

from __future__ import annotations

import math
import re
from typing import Any

from containers.kubernetes.merging import RUN, merged
from containers.kubernetes.options import KubernetesOptions
from containers.secrets import Secret
from containers.spec import LABEL_MANAGED, LABEL_OWNER, ContainerSpec
from containers.volumes import Toleration, Volume, VolumeKind
from scheduler_project.kernel.errors import InvalidValue

LABEL_CONTAINER = "punctual.container"
LABEL_NETWORK = "punctual.network"
NO_NETWORK = "none"
HOST_NETWORK = "host"
SELECTOR = f"{LABEL_MANAGED}=true"
LONELY_KEY = "value"  # of a secret whose name has one word
GPU = "nvidia.com/gpu"
TMP = "/tmp"  # noqa: S108 -- in the container
DEADLINE_MARGIN_S = 60
LEAST_GRACE_S = 1  # 0 would take the pod off the books without waiting for its end

_SECRET_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def job_manifest(spec: ContainerSpec, options: KubernetesOptions) -> dict[str, Any]:
    """The ``batch/v1`` Job of one attempt. Raises InvalidValue for what a cluster cannot be asked for."""
    labels, annotations = _labels(spec)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": spec.name,
            "namespace": options.namespace_of(spec.labels.get(LABEL_OWNER, "")),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    }
                ]
            },
            "ttlSecondsAfterFinished": options.keep_s,
            **_deadline(spec),
            "template": _template(spec, options, labels, annotations),
        },
    }


def secret_reference(name: str) -> tuple[str, str] | None:
    """The Secret and the key that ``name`` stands for: ``team/database`` is the key ``database`` of ``team``.

    None where the name has more words than that, or is none that a Secret can have.
    """
    secret, _, key = name.partition("/")
    if "/" in key or _SECRET_NAME.fullmatch(secret) is None:
        return None
    return secret, key or LONELY_KEY


def _deadline(spec: ContainerSpec) -> dict[str, int]:
    if spec.timeout_s is None:
        return {}
    whole = spec.start_timeout_s + spec.timeout_s + spec.grace_s + DEADLINE_MARGIN_S
    return {"activeDeadlineSeconds": math.ceil(whole)}


def _template(
    spec: ContainerSpec, options: KubernetesOptions, labels: dict[str, str], annotations: dict[str, str]
) -> dict[str, Any]:
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": _pod(spec, options),
    }
    whole: dict[str, Any] = merged(template, spec.pod_template)
    # What Punctual finds, ends and reads its runs by is not a matter of taste.
    whole["metadata"]["labels"] = {**whole["metadata"].get("labels", {}), **labels}
    whole["spec"]["restartPolicy"] = "Never"
    return whole


def _pod(spec: ContainerSpec, options: KubernetesOptions) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_seconds(spec.grace_s),
        # The token of an account is for runs that ask for the account.
        "automountServiceAccountToken": bool(spec.service_account),
        # Off: the addresses of all Services of the namespace would be in the environment.
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(spec, options)],
        "volumes": [
            *(
                [{"name": "tmp", "emptyDir": {"sizeLimit": str(options.tmp_bytes)}}]
                if _needs_tmp(spec)
                else []
            ),
            *({"name": f"volume-{n}", **_volume(volume)} for n, volume in enumerate(spec.volumes)),
        ],
    }
    if spec.service_account:
        pod["serviceAccountName"] = spec.service_account
    if spec.network == HOST_NETWORK:
        pod["hostNetwork"] = True
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [_toleration(given) for given in spec.tolerations]
    if spec.pull_secret:
        pod["imagePullSecrets"] = [{"name": spec.pull_secret}]
    return pod


def _container(spec: ContainerSpec, options: KubernetesOptions) -> dict[str, Any]:
    """As with ``docker run``, the words go to the image's entry point where it has one."""
    secret = {secret.variable for secret in spec.secrets}
    container: dict[str, Any] = {
        "name": RUN,
        "image": spec.image,
        "imagePullPolicy": str(spec.pull_policy),
        "env": [
            *(
                {"name": name, "value": _literal(value)}
                for name, value in spec.env.items()
                if name not in secret
            ),
            *(_secret_variable(secret) for secret in spec.secrets),
        ],
        "resources": _resources(spec),
        "securityContext": _security(spec, options),
        "volumeMounts": [
            *([{"name": "tmp", "mountPath": TMP}] if _needs_tmp(spec) else []),
            *(
                {"name": f"volume-{n}", "mountPath": volume.target, "readOnly": volume.read_only}
                for n, volume in enumerate(spec.volumes)
            ),
        ],
    }
    if spec.argv:
        container["args"] = [_literal(word) for word in spec.argv]
    if spec.working_dir:
        container["workingDir"] = spec.working_dir
    return container


def _security(spec: ContainerSpec, options: KubernetesOptions) -> dict[str, Any]:
    context: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": spec.read_only_root,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if options.run_as_non_root:
        context["runAsNonRoot"] = True
    return context | _user(spec.user)


def _user(user: str) -> dict[str, int]:
    if not user:
        return {}
    names = ("runAsUser", "runAsGroup")
    numbers = user.split(":")
    if len(numbers) > 2 or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise InvalidValue(
            f"the user {user!r}: Kubernetes takes numbers only, such as 1000 or 1000:1000", field="user"
        )
    return dict(zip(names, map(int, numbers), strict=False))


def _resources(spec: ContainerSpec) -> dict[str, dict[str, str]]:
    limits = _amounts(spec.memory_bytes, spec.cpus, spec.ephemeral_bytes)
    if spec.gpus:
        limits[GPU] = str(spec.gpus)
    requests = _amounts(spec.memory_request_bytes, spec.cpus_request, spec.ephemeral_request_bytes)
    return {name: amounts for name, amounts in (("limits", limits), ("requests", requests)) if amounts}


def _amounts(memory: int | None, cpus: float | None, disk: int | None) -> dict[str, str]:
    given = {
        "memory": None if memory is None else str(memory),
        "cpu": None if cpus is None else f"{math.ceil(round(cpus * 1000, 3))}m",
        "ephemeral-storage": None if disk is None else str(disk),
    }
    return {name: amount for name, amount in given.items() if amount is not None}


def _secret_variable(secret: Secret) -> dict[str, Any]:
    """By reference where the cluster keeps it; another place of the worker's is out of a pod's reach."""
    reference = secret_reference(secret.name) if secret.in_runtime else None
    if reference is None:
        return {"name": secret.variable, "value": _literal(secret.value)}
    name, key = reference
    return {"name": secret.variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}


def _needs_tmp(spec: ContainerSpec) -> bool:
    """A path can be mounted once: who mounts something at /tmp has that as his."""
    return all(volume.target != TMP for volume in spec.volumes)


def _volume(volume: Volume) -> dict[str, Any]:
    match volume.kind:
        case VolumeKind.SOURCE:
            return {"hostPath": {"path": volume.name}}
        case VolumeKind.CLAIM:
            return {"persistentVolumeClaim": {"claimName": volume.name, "readOnly": volume.read_only}}
        case VolumeKind.CONFIG_MAP:
            return {"configMap": {"name": volume.name}}
        case VolumeKind.SECRET:
            return {"secret": {"secretName": volume.name}}
        case VolumeKind.SCRATCH:
            return {"emptyDir": {} if volume.size_bytes is None else {"sizeLimit": str(volume.size_bytes)}}
    raise InvalidValue(
        f"the volume {volume.name!r} is one of a Docker engine: on Kubernetes name a claim", field="volumes"
    )


def _toleration(given: Toleration) -> dict[str, Any]:
    values = {
        "key": given.key,
        "operator": given.operator,
        "value": given.value,
        "effect": given.effect,
        "tolerationSeconds": given.seconds,
    }
    return {name: value for name, value in values.items() if value not in ("", None)}


def _labels(spec: ContainerSpec) -> tuple[dict[str, str], dict[str, str]]:
    """What can be a label is one; all of it is in the annotations, which hold any text."""
    own = {LABEL_MANAGED: "true", LABEL_CONTAINER: spec.name}
    # deploy/kubernetes/network.yaml makes it true.
    network = {LABEL_NETWORK: NO_NETWORK} if spec.network == NO_NETWORK else {}
    labels = {name: value for name, value in spec.labels.items() if _LABEL_VALUE.fullmatch(value)}
    return {**labels, **network, **own}, dict(spec.labels)


def grace_seconds(grace_s: float) -> int:
    """Whole seconds, rounded up, as a pod wants them."""
    return max(LEAST_GRACE_S, math.ceil(grace_s))


def _literal(text: str) -> str:
    """So that the kubelet, which expands $(NAME) in words and values, leaves ``text`` as it is."""
    return text.replace("$", "$$")
