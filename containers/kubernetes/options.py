"""How runs are placed in a cluster, and how long each trouble of a pod may last; plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from containers.outcome import Reason

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds for which a pod may be in each trouble before its run is given up.

    ``unschedulable``: no node has room (an autoscaler may bring one). ``image_pull``: a registry may
    be away for a moment. ``configuration``: what the pod refers to may be made a moment later.
    ``crash_loop``: a container of the pod template that ends again and again. ``node_lost``: counted
    from when the pod should have been gone. The time for the whole start goes before all but the last.
    """

    unschedulable: float = 300.0
    image_pull: float = 60.0
    configuration: float = 15.0
    crash_loop: float = 60.0
    node_lost: float = 60.0

    def with_reason(self, reason: Reason) -> float:
        """Seconds for a trouble of that kind before a pod runs."""
        if reason is Reason.UNSCHEDULABLE:
            return self.unschedulable
        if reason is Reason.IMAGE_PULL_FAILED:
            return self.image_pull
        return self.crash_loop if reason is Reason.CRASH_LOOP else self.configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """``kubeconfig`` and ``context``: empty ones are KUBECONFIG's, else those of ~/.kube/config, else
    the service account of the pod that this is. ``namespace``: of runs whose owner has none of its own
    in ``team_namespaces`` (owner: namespace). ``keep_s``: how long the cluster keeps an ended Job that
    nobody removes. ``tmp_bytes``: size of /tmp. ``run_as_non_root``: images that start as root are refused.
    ``watch_s`` and ``relist_s``: how long one watch lasts, and how often all is listed anew. ``look_s``: how
    often a run is looked at without a change, in what has arrived or, where nothing does, by asking.
    ``page``: the most objects of one answer. ``log_silence_s``: a log that is followed is asked for anew
    when nothing came for that long."""

    namespace: str = "punctual-runs"
    team_namespaces: Mapping[str, str] = field(default_factory=dict)
    kubeconfig: str = ""
    context: str = ""
    keep_s: int = 24 * 3600
    tmp_bytes: int = 256 * MEBIBYTE
    run_as_non_root: bool = False
    patience: Patience = field(default_factory=Patience)
    watch_s: int = 60
    relist_s: float = 600.0
    look_s: float = 5.0
    page: int = 500
    api_timeout_s: float = 30.0
    log_silence_s: float = 120.0

    def namespace_of(self, owner: str) -> str:
        return self.team_namespaces.get(owner, self.namespace)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All in which there may be runs; the default one first."""
        return tuple(dict.fromkeys([self.namespace, *sorted(self.team_namespaces.values())]))
