"""The run worker that this process is, made from the settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from containers.docker import DockerOptions
from containers.kubernetes.options import KubernetesOptions, Patience
from containers.registry import RuntimeOptions, runtime_from
from containers.runtime import Runtime
from containers.secrets import EnvironmentSecrets, FolderSecrets, SecretSource
from executions.store import default_store
from executions.worker.defaults import configured_defaults
from executions.worker.lifecycle import RunWorker
from executions.worker.slots import Slots
from scheduler_project.kernel.clock import SYSTEM_CLOCK

_current: RunWorker | None = None


def open_worker(slots: Slots, name: str) -> RunWorker:
    """Make this process a run worker."""
    global _current  # noqa: PLW0603 -- Celery's signals have no other way to find it
    runtime = configured_runtime()
    _current = RunWorker(
        f"{name}/{os.getpid()}",
        slots,
        runtime,
        default_store(),
        defaults=replace(
            configured_defaults(), secrets=configured_secrets(runtime), secret_key=settings.SECRET_KEY
        ),
        clock=SYSTEM_CLOCK,
    )
    return _current


def current_worker() -> RunWorker | None:
    """The run worker that this process is, if it is one."""
    return _current


def let_go() -> None:
    """This worker is going to end: it takes nothing more and lets go of its containers, which go on."""
    if _current is not None:
        _current.slots.stop_accepting()
        _current.stopping.set()


def configured_secrets(runtime: Runtime) -> Sequence[SecretSource]:
    """Where this worker looks for secrets, in that order."""
    own = runtime.secret_source()
    folder = settings.PUNCTUAL_SECRETS_DIR
    return [
        *([] if own is None else [own]),
        EnvironmentSecrets(os.environ),
        *([FolderSecrets(Path(folder))] if folder else []),
    ]


def configured_runtime() -> Runtime:
    options = RuntimeOptions(
        home=settings.PUNCTUAL_HOME,
        working_dir=settings.PUNCTUAL_PROCESS_WORKDIR,
        docker=DockerOptions(),
        kubernetes=configured_cluster(),
    )
    if settings.PUNCTUAL_PROCESS_PATH:
        options = replace(options, path=settings.PUNCTUAL_PROCESS_PATH)
    return runtime_from(settings.PUNCTUAL_RUNTIME, options)


def configured_cluster() -> KubernetesOptions:
    return KubernetesOptions(
        namespace=settings.PUNCTUAL_KUBERNETES_NAMESPACE,
        team_namespaces=settings.PUNCTUAL_KUBERNETES_TEAM_NAMESPACES,
        context=settings.PUNCTUAL_KUBERNETES_CONTEXT,
        keep_s=int(settings.PUNCTUAL_KUBERNETES_KEEP.total_seconds()),
        run_as_non_root=settings.PUNCTUAL_KUBERNETES_NON_ROOT,
        patience=Patience(
            unschedulable=settings.PUNCTUAL_KUBERNETES_UNSCHEDULABLE.total_seconds(),
            image_pull=settings.PUNCTUAL_KUBERNETES_IMAGE_PULL.total_seconds(),
            node_lost=settings.PUNCTUAL_KUBERNETES_NODE_LOST.total_seconds(),
        ),
    )
