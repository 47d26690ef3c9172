"""Choosing a runtime by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from containers.docker import DockerOptions, DockerRuntime
from containers.kubernetes.options import KubernetesOptions
from containers.process import ProcessOptions, ProcessRuntime
from containers.process.runtime import DEFAULT_PATH
from containers.runtime import Runtime, RuntimeUnavailable
from scheduler_project.kernel.errors import InvalidValue

BUILT = ("docker", "kubernetes", "process")
DETECT_WITHIN_S = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """``home``: PUNCTUAL_HOME. ``path``, ``working_dir``: for process runs. The others: see there."""

    home: Path
    path: str = DEFAULT_PATH
    working_dir: str = ""
    docker: DockerOptions = field(default_factory=DockerOptions)
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)


def runtime_from(name: str, options: RuntimeOptions) -> Runtime:
    """The runtime of that name; nothing is contacted yet. Raises InvalidValue for a name without one."""
    if name == "docker":
        return DockerRuntime(options.docker)
    if name == "process":
        return ProcessRuntime(
            ProcessOptions(home=options.home, path=options.path, working_dir=options.working_dir)
        )
    if name == "kubernetes":
        from containers.kubernetes.runtime import KubernetesRuntime

        return KubernetesRuntime(options.kubernetes)
    raise InvalidValue(f"{name!r} is not a runtime: use one of {', '.join(BUILT)}", field="runtime")


def detect(host: str = "") -> bool:
    """Whether a Docker engine answers, within a few seconds."""
    runtime = DockerRuntime(DockerOptions(host=host, api_timeout_s=DETECT_WITHIN_S))
    try:
        runtime.ping()
    except RuntimeUnavailable:
        return False
    finally:
        runtime.close()
    return True
