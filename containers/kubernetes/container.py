"""One attempt as a Job of a cluster: waiting for it, stopping it, removing it.

It is stopped by its own deadline: the Job's controller deletes the pod (SIGTERM, grace, SIGKILL, by
the kubelet), and the Job stays as a record that it was stopped. It is deleted only when it is
forgotten, so that a worker that attaches after the death of the one that stopped it does not take
it for lost.
"""

from __future__ import annotations

import threading
from datetime import datetime
from http import HTTPStatus

from containers.kubernetes.cluster import Cluster, Refused
from containers.kubernetes.feeds import TERMINAL, Feeds, Json, jobs_path, pods_of, pods_path
from containers.kubernetes.manifest import LEAST_GRACE_S, grace_seconds
from containers.kubernetes.output import PodFollower
from containers.kubernetes.reading import Ended, Running, Seen, read
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.outcome import Exit, Reason
from containers.runtime import RuntimeUnavailable
from containers.waiting import Check, checked_wait, unchecked
from scheduler_project.kernel.clock import monotonic

ASK_AGAIN_S = 0.2
KILL_WITHIN_S = 60.0
REPORT_WITHIN_S = 2.0  # after the end of a grace
STOP = {"spec": {"activeDeadlineSeconds": 1}}
VANISHED = "its Job was deleted by somebody"


class KubernetesContainer:
    def __init__(self, cluster: Cluster, feeds: Feeds, name: str, seen: Running | Ended) -> None:
        self._cluster = cluster
        self._feeds = feeds
        self._name = name
        self._seen = seen
        self._wake = feeds.subscribe(name)
        self._look_at = monotonic()
        self._exit: Exit | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def started_at(self) -> datetime:
        return self._seen.started_at

    def now(self) -> datetime:
        return self._cluster.now()

    def wait(self, timeout_s: float) -> Exit | None:
        deadline = monotonic() + timeout_s
        while self._exit is None:
            if self._wake.is_set() or monotonic() >= self._look_at:
                self._look()
                continue
            left = deadline - monotonic()
            if left <= 0:
                return None
            self._wake.wait(min(left, self._look_at - monotonic()))
        return self._exit

    def stop(self, grace_s: float, check: Check = unchecked) -> None:
        try:
            self._cluster.patch(f"{jobs_path(self._feeds.namespace)}/{self._name}", STOP)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise RuntimeUnavailable(f"{self._name} cannot be stopped: {refusal}") from refusal
        whole_s = grace_seconds(grace_s) + REPORT_WITHIN_S
        ended = self._ends_within(whole_s, check)
        if not ended and self._tell_pods(grace_seconds(grace_s)):
            ended = self._ends_within(whole_s, check)
        if not ended:
            # The pod may have a longer grace of its own, as after a stop that was left to us.
            kill_pods(self._cluster, self._feeds.namespace, self._name)
            if not self._ends_within(KILL_WITHIN_S, check):
                raise RuntimeUnavailable(f"{self._name} does not end when killed")

    def _tell_pods(self, grace: int) -> bool:
        """Whether there were pods that nobody had told to end, the Job's controller being slow."""
        namespace = self._feeds.namespace
        try:
            untold = [
                pod
                for pod in _living(self._cluster, namespace, self._name)
                if "deletionTimestamp" not in pod["metadata"]
            ]
            _end(self._cluster, namespace, untold, grace)
        except Refused as refusal:
            raise RuntimeUnavailable(f"{self._name} cannot be stopped: {refusal}") from refusal
        return bool(untold)

    def _ends_within(self, seconds: float, check: Check) -> bool:
        return checked_wait(lambda some: self.wait(some) is not None, seconds, check)

    def follow(self, log: LogWriter) -> Follower:
        return PodFollower(self._cluster, self._feeds, self._seen, self._name, log).start()

    def remove(self) -> None:
        self._feeds.unsubscribe(self._name, self._wake)
        remove_job(self._cluster, self._feeds.namespace, self._name)

    def _look(self) -> None:
        self._wake.clear()
        self._look_at = monotonic() + self._cluster.options.look_s
        seen = look(self._feeds, self._name)
        if seen is None:
            self._exit = Exit(None, self._cluster.now(), why=Reason.DELETED, detail=VANISHED)
        elif isinstance(seen, Ended):
            self._exit = seen.exit
        if self._exit is not None:
            self._feeds.unsubscribe(self._name, self._wake)


def look(feeds: Feeds, name: str) -> Seen | None:
    """What there is to see of a run now; None where there is no such Job. Raises RuntimeUnavailable."""
    try:
        found = feeds.view(name)
    except Refused as refusal:
        raise RuntimeUnavailable(f"{name} cannot be looked at: {refusal}") from refusal
    if found is None:
        return None
    return read(*found, feeds.now(), feeds.patience.node_lost)


def remove_job(cluster: Cluster, namespace: str, name: str) -> None:
    """Delete the Job and its pods; returns when nothing of it runs. Idempotent."""
    try:
        _remove(cluster, namespace, name)
    except Refused as refusal:
        raise RuntimeUnavailable(f"{name} cannot be removed: {refusal}") from refusal


def _remove(cluster: Cluster, namespace: str, name: str) -> None:
    living = _living(cluster, namespace, name)
    # With its pods, and only then itself; what runs no more may go when the cluster has time.
    policy = "Foreground" if living else "Background"
    cluster.delete(f"{jobs_path(namespace)}/{name}", {"propagationPolicy": policy})
    _end(cluster, namespace, living, LEAST_GRACE_S)
    deadline = monotonic() + KILL_WITHIN_S
    while living and _is_there(cluster, namespace, name):
        threading.Event().wait(ASK_AGAIN_S)
        if monotonic() > deadline:
            raise RuntimeUnavailable(f"the pod of {name} does not end when it is deleted")


def _is_there(cluster: Cluster, namespace: str, name: str) -> bool:
    """The Job goes after its pods; pods that are alone are of a Job that is gone."""
    job = cluster.find(f"{jobs_path(namespace)}/{name}")
    return job is not None or bool(_living(cluster, namespace, name))


def kill_pods(cluster: Cluster, namespace: str, name: str) -> None:
    """SIGKILL, in a second, for what still runs. Raises RuntimeUnavailable."""
    try:
        _end(cluster, namespace, _living(cluster, namespace, name), LEAST_GRACE_S)
    except Refused as refusal:
        raise RuntimeUnavailable(f"{name} cannot be killed: {refusal}") from refusal


def _end(cluster: Cluster, namespace: str, pods: list[Json], grace: int) -> None:
    for pod in pods:
        path = f"{pods_path(namespace)}/{pod['metadata']['name']}"
        cluster.delete(path, {"gracePeriodSeconds": grace})


def _living(cluster: Cluster, namespace: str, name: str) -> list[Json]:
    pods = pods_of(cluster, namespace, name)
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in TERMINAL]
