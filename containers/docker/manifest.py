"""What is asked of the engine for one attempt; pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from docker.types import DeviceRequest, Mount

from containers.docker.engine import DockerOptions
from containers.spec import LABEL_MANAGED, ContainerSpec
from containers.volumes import VolumeKind


def container_settings(spec: ContainerSpec) -> dict[str, Any]:
    """Arguments of ``create_container`` except for the host's part.

    As with ``docker run``, the command goes to the image's entry point where it has one.
    """
    return {
        "image": spec.image,
        "command": list(spec.argv) or None,
        "name": spec.name,
        "environment": spec.environment(),
        "working_dir": spec.working_dir or None,
        "labels": {**spec.labels, LABEL_MANAGED: "true"},
        "user": spec.user or None,
        # Off: proxies in the worker's Docker config are the worker's environment, not the run's.
        "use_config_proxy": False,
    }


def host_settings(spec: ContainerSpec, options: DockerOptions) -> dict[str, Any]:
    """Arguments of ``create_host_config``: as little as a run can do with."""
    return {
        "network_mode": spec.network or options.network,
        "init": options.init,
        "read_only": spec.read_only_root,
        "tmpfs": _scratch(spec, options),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": spec.pids_limit,
        # The "local" driver keeps bytes as they are; "json-file" replaces what is not UTF-8.
        "log_config": {
            "Type": "local",
            "Config": {"max-size": str(options.log_file_bytes), "max-file": str(options.log_files)},
        },
        **_memory(spec),
        **_cpus(spec),
        **_devices(spec),
        **_storage(spec),
    }


def ignored(spec: ContainerSpec) -> list[str]:
    """What the spec says and Docker has no counterpart for: where in a cluster it runs."""
    given = {
        "nodeSelector": spec.node_selector,
        "tolerations": spec.tolerations,
        "pullSecret": spec.pull_secret,
    }
    return [name for name, value in given.items() if value]


_MOUNT_TYPES: dict[VolumeKind, Literal["bind", "volume"]] = {
    VolumeKind.SOURCE: "bind",
    VolumeKind.VOLUME: "volume",
}
_TMP = "/tmp"  # noqa: S108
_CPU_SHARES = 1024  # of one whole CPU, as Kubernetes counts them
_LEAST_SHARES, _MOST_SHARES = 2, 262_144


def _memory(spec: ContainerSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if spec.memory_bytes is not None:
        # The same figure for memory and memory with swap: no swap.
        settings |= {"mem_limit": spec.memory_bytes, "memswap_limit": spec.memory_bytes}
    if spec.memory_request_bytes is not None:
        settings["mem_reservation"] = spec.memory_request_bytes
    return settings


def _cpus(spec: ContainerSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if spec.cpus is not None:
        settings["nano_cpus"] = round(spec.cpus * 1e9)
    if spec.cpus_request is not None:
        shares = round(spec.cpus_request * _CPU_SHARES)
        settings["cpu_shares"] = min(max(shares, _LEAST_SHARES), _MOST_SHARES)
    return settings


def _devices(spec: ContainerSpec) -> dict[str, Any]:
    if not spec.gpus:
        return {}
    return {"device_requests": [DeviceRequest(count=spec.gpus, capabilities=[["gpu"]])]}


def _scratch(spec: ContainerSpec, options: DockerOptions) -> dict[str, str]:
    """Folders in memory, by target. Under a read-only root, ``ephemeral_bytes`` is the size of /tmp.

    None is where a volume is: the engine would take the folder in memory, and what is written be lost.
    """
    tmp_bytes = options.tmp_bytes
    if spec.read_only_root and spec.ephemeral_bytes is not None:
        tmp_bytes = spec.ephemeral_bytes
    folders = {} if any(volume.target == _TMP for volume in spec.volumes) else {_TMP: tmp_bytes}
    folders |= {
        volume.target: volume.size_bytes or 0 for volume in spec.volumes if volume.kind is VolumeKind.SCRATCH
    }
    return {target: f"rw,exec,nosuid,nodev,mode=1777,size={size}" for target, size in folders.items()}


def _storage(spec: ContainerSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if not spec.read_only_root and spec.ephemeral_bytes is not None:
        # Only some storage drivers can; an engine that cannot refuses it.
        settings["storage_opt"] = {"size": str(spec.ephemeral_bytes)}
    mounts = [
        Mount(volume.target, volume.name, type=_MOUNT_TYPES[volume.kind], read_only=volume.read_only)
        for volume in spec.volumes
        if volume.kind in _MOUNT_TYPES
    ]
    return settings | ({"mounts": mounts} if mounts else {})


def instant(text: str) -> datetime:
    """A time stamp of the engine (nanoseconds, RFC 3339) as an aware datetime."""
    return datetime.fromisoformat(text)
