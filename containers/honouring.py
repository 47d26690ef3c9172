"""What a runtime cannot give a run is refused at the launch, by name: no run starts as another than asked.

Not refused is what only guides: labels, requests, node selector, tolerations, pull policy and pull secret
have nothing to choose among where there is one host, or no image, and a run does the same without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from containers.outcome import Reason
from containers.runtime import LaunchFailed
from containers.spec import ContainerSpec
from containers.volumes import VolumeKind
from scheduler_project.kernel.texts import shortened, shown

MOST_BYTES = (2 << 20) - (128 << 10)
"""Of a command with its environment: a quarter of the usual stack, by Linux, without what a runtime adds."""
MOST_BYTES_AT_ONCE = (128 << 10) - 1  # of one word or variable, by Linux
TOO_LONG = "the command and its environment are longer than this system can start: pass large data by a file"
_POINTER = 8


class Wish(StrEnum):
    """What a run may ask for and not every runtime has; the value is the field of ``container``."""

    USER = "user"
    VOLUMES = "volumes"
    CLUSTER_VOLUMES = "volumes: claim, configMap, secret"
    ENGINE_VOLUMES = "volumes: volume"
    NETWORK = "network"
    NAMED_NETWORK = "network of that name"
    GPUS = "resources.gpu"
    EPHEMERAL = "resources.ephemeralStorage"
    SERVICE_ACCOUNT = "serviceAccount"
    POD_TEMPLATE = "podTemplate"


_CLUSTER_KINDS = {VolumeKind.CLAIM, VolumeKind.CONFIG_MAP, VolumeKind.SECRET}
_ASKED: dict[Wish, Callable[[ContainerSpec], object]] = {
    Wish.USER: lambda spec: spec.user,
    Wish.VOLUMES: lambda spec: _targets(spec, set(VolumeKind)),
    Wish.CLUSTER_VOLUMES: lambda spec: _targets(spec, _CLUSTER_KINDS),
    Wish.ENGINE_VOLUMES: lambda spec: _targets(spec, {VolumeKind.VOLUME}),
    Wish.NETWORK: lambda spec: spec.network,
    Wish.NAMED_NETWORK: lambda spec: spec.network not in ("", "host", "none") and spec.network,
    Wish.GPUS: lambda spec: spec.gpus,
    Wish.EPHEMERAL: lambda spec: spec.ephemeral_bytes,
    Wish.SERVICE_ACCOUNT: lambda spec: spec.service_account,
    Wish.POD_TEMPLATE: lambda spec: list(spec.pod_template),
}


def refuse(spec: ContainerSpec, runtime: str, lacking: Iterable[Wish], way_out: str) -> None:
    """LaunchFailed for the wishes of ``spec`` that ``runtime`` lacks; ``way_out``: what to do then. So it is
    for what no runtime can start."""
    _refuse_long(spec)
    asked = [f"{wish} ({_in_words(value)})" for wish in lacking if (value := _ASKED[wish](spec))]
    if asked:
        text = f"the {runtime} runtime cannot give what container asks for: {', '.join(asked)}; {way_out}"
        raise LaunchFailed(Reason.START_FAILED, text)


def _refuse_long(spec: ContainerSpec) -> None:
    """LaunchFailed for what no system starts: in a container its first program would fail with it, as if it
    were the command, and by an exit code that any command may have."""
    variables = [f"{name}={value}" for name, value in spec.environment().items()]
    sizes = [len(text.encode()) + 1 for text in (*spec.argv, *variables)]
    if sum(sizes) + _POINTER * len(sizes) > MOST_BYTES or max(sizes, default=0) > MOST_BYTES_AT_ONCE:
        amounts = f"{sum(sizes)} bytes, the longest of them {max(sizes)}"
        most = f"at most {MOST_BYTES} in all and {MOST_BYTES_AT_ONCE} in one"
        raise LaunchFailed(Reason.START_FAILED, f"{TOO_LONG} ({amounts}; {most})")


def _targets(spec: ContainerSpec, kinds: set[VolumeKind]) -> list[str]:
    return [volume.target for volume in spec.volumes if volume.kind in kinds]


def _in_words(value: object) -> str:
    return shortened(", ".join(map(str, value)), 200) if isinstance(value, list) else shown(value)
