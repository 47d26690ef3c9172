"""Starting, finding and forgetting runs as Jobs of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from containers.capacity import Capacity
from containers.honouring import Wish, refuse
from containers.kubernetes.cluster import Cluster, Refused
from containers.kubernetes.container import KubernetesContainer, look, remove_job
from containers.kubernetes.feeds import Feeds, jobs_path
from containers.kubernetes.manifest import SELECTOR, job_manifest
from containers.kubernetes.options import KubernetesOptions
from containers.kubernetes.reading import Ended, Pending, Running, Seen
from containers.kubernetes.refusals import OVER_QUOTA, PodRefusals
from containers.kubernetes.rights import check_rights
from containers.kubernetes.secrets import KubernetesSecrets
from containers.kubernetes.starting import Start
from containers.launching import LaunchCancelled, Launching
from containers.outcome import Reason
from containers.runtime import LaunchFailed, RuntimeUnavailable
from containers.spec import LABEL_NAMESPACE, LABEL_OWNER, ContainerSpec
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.errors import InvalidValue

LOOK_AGAIN_S = 1.0
LACKING = (Wish.ENGINE_VOLUMES, Wish.NAMED_NETWORK)
WAY_OUT = "name a claim, and no network or the network none"
GONE = "its Job was deleted while it started"


class KubernetesRuntime:
    name = "kubernetes"

    def __init__(self, options: KubernetesOptions | None = None) -> None:
        self._options = options or KubernetesOptions()
        self._cluster = Cluster(self._options)
        self._feeds = {name: Feeds(self._cluster, name) for name in self._options.namespaces}

    def identity(self) -> str:
        """By the id of the namespace, which no other namespace of any cluster has."""
        with _asking("the namespace cannot be read"):
            found = self._cluster.get(f"/api/v1/namespaces/{self._options.namespace}")
        return f"kubernetes:{found['metadata']['uid']}"

    def capacity(self) -> Capacity:
        """Without limit: the cluster decides when and where a pod begins."""
        return Capacity()

    def launch(self, spec: ContainerSpec, launching: Launching | None = None) -> KubernetesContainer:
        if not spec.image:
            raise LaunchFailed(Reason.START_FAILED, "no image is given, and the kubernetes runtime needs one")
        refuse(spec, self.name, LACKING, WAY_OUT)
        launching = launching or Launching(spec.start_timeout_s)
        launching.check()
        feeds = self._feeds[self._options.namespace_of(spec.labels.get(LABEL_OWNER, ""))]
        try:
            self._create(feeds, spec)
        except InvalidValue as error:
            raise LaunchFailed(Reason.START_FAILED, error.message) from error
        except Refused as refusal:
            raise LaunchFailed(Reason.START_FAILED, f"the cluster refuses it: {refusal}") from refusal
        return self._started(feeds, spec.name, launching)

    def attach(self, name: str, launching: Launching | None = None) -> KubernetesContainer | None:
        for feeds in self._feeds.values():
            seen = look(feeds, name)
            if isinstance(seen, Running | Ended):
                return KubernetesContainer(self._cluster, feeds, name, seen)
            if seen is not None and launching is not None:
                return self._started(feeds, name, launching)
        return None

    def forget(self, name: str) -> None:
        for feeds in self._feeds.values():
            remove_job(self._cluster, feeds.namespace, name)

    def secret_source(self) -> KubernetesSecrets:
        return KubernetesSecrets(self._cluster)

    def ping(self) -> None:
        with _asking("the worker's rights cannot be asked for"):
            for namespace in self._options.namespaces:
                check_rights(self._cluster, namespace)

    def owned(self, namespace: str = "") -> list[str]:
        selector = f"{SELECTOR},{LABEL_NAMESPACE}={namespace}" if namespace else SELECTOR
        with _asking("the Jobs cannot be listed"):
            return sorted(
                str(job["metadata"]["name"])
                for namespace in self._options.namespaces
                for job in self._cluster.items(jobs_path(namespace), labelSelector=selector)
            )

    def keep_images_within(self, limit_bytes: int) -> list[str]:
        """It keeps none."""
        return []

    def close(self) -> None:
        for feeds in self._feeds.values():
            feeds.close()
        self._cluster.close()

    def _create(self, feeds: Feeds, spec: ContainerSpec) -> None:
        """Make the Job, or find it made by an earlier or another worker."""
        try:
            self._cluster.create(jobs_path(feeds.namespace), job_manifest(spec, self._options))
        except Refused as refusal:
            if OVER_QUOTA in refusal.message:
                raise RuntimeUnavailable(f"no room in the namespace: {refusal}") from refusal
            if refusal.status != HTTPStatus.CONFLICT:
                raise

    def _started(self, feeds: Feeds, name: str, launching: Launching) -> KubernetesContainer:
        """The container once it has started; a Job that does not come so far is removed."""
        try:
            return self._wait_for_start(feeds, name, launching)
        except (LaunchFailed, LaunchCancelled):
            remove_job(self._cluster, feeds.namespace, name)
            raise

    def _wait_for_start(self, feeds: Feeds, name: str, launching: Launching) -> KubernetesContainer:
        start = Start(self._options.patience, launching)
        refusals = PodRefusals(self._cluster, feeds.namespace)
        changed = feeds.subscribe(name)
        try:
            while True:
                changed.clear()
                seen = self._look_patiently(feeds, name, launching)
                if not isinstance(seen, Pending):
                    return self._made(feeds, name, seen)
                launching.not_started()
                start.pending(refusals.explain(seen))
                launching.wait(LOOK_AGAIN_S, changed)
        finally:
            feeds.unsubscribe(name, changed)

    def _look_patiently(self, feeds: Feeds, name: str, launching: Launching) -> Seen:
        """What there is to see, for as long as the start may take, however its cluster stutters."""
        for delay in exponential(cap=5.0):
            try:
                seen = look(feeds, name)
                break
            except RuntimeUnavailable:
                if launching.left_s <= 0:
                    raise
            launching.wait(delay)
        if seen is None:
            raise RuntimeUnavailable(f"{name}: {GONE}")
        return seen

    def _made(self, feeds: Feeds, name: str, seen: Running | Ended) -> KubernetesContainer:
        if isinstance(seen, Ended) and seen.exit.start_error:
            raise LaunchFailed(Reason.START_FAILED, seen.exit.start_error)
        return KubernetesContainer(self._cluster, feeds, name, seen)


@contextmanager
def _asking(complaint: str) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise RuntimeUnavailable(f"{complaint}: {refusal}") from refusal
