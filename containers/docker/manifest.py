"""What is asked of the engine for one attempt; pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from containers.docker.engine import DockerOptions
from containers.spec import LABEL_MANAGED, ContainerSpec


def container_settings(spec: ContainerSpec) -> dict[str, Any]:
    """Arguments of ``create_container`` except for the host's part.

    As with ``docker run``, the command goes to the image's entry point where it has one.
    """
    return {
        "image": spec.image,
        "command": list(spec.argv) or None,
        "name": spec.name,
        "environment": dict(spec.env),
        "working_dir": spec.working_dir or None,
        "labels": {**spec.labels, LABEL_MANAGED: "true"},
        "user": spec.user or None,
        # Off: proxies in the worker's Docker config are the worker's environment, not the run's.
        "use_config_proxy": False,
    }


def host_settings(spec: ContainerSpec, options: DockerOptions) -> dict[str, Any]:
    """Arguments of ``create_host_config``: as little as a run can do with."""
    settings: dict[str, Any] = {
        "network_mode": spec.network or options.network,
        "init": options.init,
        "read_only": spec.read_only_root,
        "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={options.tmp_bytes}"},  # noqa: S108
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": spec.pids_limit,
        # The "local" driver keeps bytes as they are; "json-file" replaces what is not UTF-8.
        "log_config": {
            "Type": "local",
            "Config": {"max-size": str(options.log_file_bytes), "max-file": str(options.log_files)},
        },
    }
    if spec.memory_bytes is not None:
        # The same figure for memory and memory with swap: no swap.
        settings |= {"mem_limit": spec.memory_bytes, "memswap_limit": spec.memory_bytes}
    if spec.cpus is not None:
        settings["nano_cpus"] = round(spec.cpus * 1e9)
    return settings


def instant(text: str) -> datetime:
    """A time stamp of the engine (nanoseconds, RFC 3339) as an aware datetime."""
    return datetime.fromisoformat(text)
