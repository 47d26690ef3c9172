"""Knowing of every change without asking for each run: one list-then-watch per namespace and kind.

    list ─► watch ─► watch ─► …        each from the version that the one before ended with
      ▲       │ 410 Gone: that version is too old to go on from
      └───────┴ or the list is older than ``relist_s``: a change that got lost is found then;
                or an answer is not to be understood

A watch ends by itself after a minute (``watch_s``), so that a connection that died without a word
costs no more than that. Bookmarks keep the version young where nothing happens.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from containers.kubernetes.cluster import Cluster, Refused, Stream
from containers.kubernetes.manifest import LABEL_CONTAINER, SELECTOR
from containers.kubernetes.reading import is_over, pods_of_job
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

SILENCE_MARGIN_S = 15.0
SHORT_WATCH_S = 0.5
TERMINAL = ("Succeeded", "Failed")
Json = dict[str, Any]


class Expired(RetryableError):
    """The version to watch from is older than what the cluster remembers."""


class Feed:
    """The newest versions of all objects at one path, kept so by a thread. ``changed`` gets each change."""

    def __init__(self, cluster: Cluster, path: str, changed: Callable[[Json], None]) -> None:
        self.objects: dict[str, Json] = {}
        self.live = False  # whether changes arrive at this moment
        self._cluster = cluster
        self._path = path
        self._changed = changed
        self._version = ""
        self._relist_at = 0.0
        self._stream: Stream | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"watch-{path.rpartition('/')[2]}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._stream is not None:
            self._stream.cut()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        delays = exponential(cap=10.0)
        while not self._closed.is_set():
            try:
                self._step()
                delays = exponential(cap=10.0)
                continue
            except Expired:
                self._version = ""
            except (RuntimeUnavailable, Refused) as error:
                if not self._closed.is_set():
                    logger.warning("watch_interrupted", extra={"path": self._path, "error": error.message})
            except Exception:
                # An answer that is like no other: every run depends on this thread, so it begins anew.
                logger.exception("watch_failed", extra={"path": self._path})
                self._version = ""
            # Only here: between a watch that has had its time and the next, nobody has to ask for himself.
            self.live = False
            self._closed.wait(next(delays))

    def _step(self) -> None:
        """List where that is due, and one watch. Raises Expired, RuntimeUnavailable or Refused."""
        if not self._version or monotonic() >= self._relist_at:
            self._list()
        begun = monotonic()
        self._watch()
        if monotonic() - begun < SHORT_WATCH_S and not self._closed.is_set():
            raise RuntimeUnavailable("a watch ended as soon as it began")

    def _list(self) -> None:
        found: dict[str, Json] = {}
        version = ""
        for page in self._cluster.pages(self._path, labelSelector=SELECTOR):
            found |= {thing["metadata"]["name"]: thing for thing in page.get("items") or ()}
            version = str(page["metadata"]["resourceVersion"])
        gone = [thing for name, thing in self.objects.items() if name not in found]
        self.objects = found
        self.live = True  # before any is woken, who would otherwise each ask for his own
        self._version = version
        self._relist_at = monotonic() + self._cluster.options.relist_s
        for thing in (*found.values(), *gone):
            self._changed(thing)

    def _watch(self) -> None:
        watch_s = self._cluster.options.watch_s
        try:
            self._stream = self._cluster.stream(
                self._path,
                watch_s + SILENCE_MARGIN_S,
                labelSelector=SELECTOR,
                watch=True,
                allowWatchBookmarks=True,
                resourceVersion=self._version,
                timeoutSeconds=watch_s,
            )
        except Refused as refusal:
            if refusal.status == HTTPStatus.GONE:
                raise Expired from None
            raise
        self.live = True
        for line in self._stream.lines():
            if self._closed.is_set():
                self._stream.cut()
                return
            if line:
                self._take(json.loads(line))

    def _take(self, event: Json) -> None:
        thing = event["object"]
        if event["type"] == "ERROR":
            if thing.get("code") == HTTPStatus.GONE:
                raise Expired
            raise RuntimeUnavailable(f"a watch failed: {thing.get('message', '')}")
        self._version = str(thing["metadata"]["resourceVersion"])
        if event["type"] == "BOOKMARK":
            return
        if event["type"] == "DELETED":
            self.objects.pop(thing["metadata"]["name"], None)
        else:
            self.objects[thing["metadata"]["name"]] = thing
        self._changed(thing)


class Feeds:
    """The Jobs and the pods of one namespace, by the name of their container."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace
        self._jobs = Feed(cluster, jobs_path(namespace), self._changed_job)
        self._pods = Feed(cluster, pods_path(namespace), self._changed_pod)
        self._pods_of: dict[str, dict[str, Json]] = {}
        self._last: dict[
            str, Json
        ] = {}  # of names that somebody waits for: the pod that is gone, as it ended
        self._waiters: dict[str, set[threading.Event]] = {}
        self._lock = threading.Lock()
        self._started = False
        self.patience = cluster.options.patience
        self.now = cluster.now

    def view(self, name: str) -> tuple[Json, list[Json]] | None:
        """The Job of that name and its pods; None where there is no Job. Raises as ``Cluster.get`` does.

        From what has arrived; where nothing does arrive, or the Job is not among it, or it is over and
        nothing was seen of its pod, by asking.
        """
        job = self._jobs.objects.get(name)
        if job is not None and self._jobs.live and self._pods.live:
            with self._lock:
                known = self._pods_known(job, name)
            # The two watches are of no common order: the pod of a Job that has ended may be yet to come.
            if known or not is_over(job):
                return job, known
        else:
            job = self._cluster.find(f"{jobs_path(self.namespace)}/{name}")
        if job is None:
            return None
        asked = pods_of_job(job, pods_of(self._cluster, self.namespace, name))
        return job, asked or self._remembered(job, name)

    def subscribe(self, name: str) -> threading.Event:
        """An event that is set whenever something of ``name`` has changed."""
        event = threading.Event()
        with self._lock:
            self._waiters.setdefault(name, set()).add(event)
            if not self._started:
                self._started = True
                self._jobs.start()
                self._pods.start()
        return event

    def unsubscribe(self, name: str, event: threading.Event) -> None:
        with self._lock:
            waiting = self._waiters.get(name, set())
            waiting.discard(event)
            if not waiting:
                self._waiters.pop(name, None)
                self._last.pop(name, None)

    def close(self) -> None:
        self._jobs.close()
        self._pods.close()

    def _changed_job(self, job: Json) -> None:
        self._wake(str(job["metadata"]["name"]))

    def _changed_pod(self, pod: Json) -> None:
        name = container_of(pod)
        key = str(pod["metadata"]["name"])
        with self._lock:
            if key in self._pods.objects:
                self._pods_of.setdefault(name, {})[key] = pod
            else:
                self._drop_pod(name, key, pod)
        self._wake(name)

    def _drop_pod(self, name: str, key: str, last: Json) -> None:
        """A pod that is ended by deleting it shows how it ended for a moment only."""
        own = self._pods_of.get(name, {})
        own.pop(key, None)
        if not own:
            self._pods_of.pop(name, None)
        if name in self._waiters and (last.get("status") or {}).get("phase") in TERMINAL:
            self._last[name] = last

    def _pods_known(self, job: Json, name: str) -> list[Json]:
        arrived = pods_of_job(job, self._pods_of.get(name, {}).values())
        return arrived or self._remembered(job, name)

    def _remembered(self, job: Json, name: str) -> list[Json]:
        last = self._last.get(name)
        return [] if last is None else pods_of_job(job, [last])

    def _wake(self, name: str) -> None:
        with self._lock:
            for event in self._waiters.get(name, ()):
                event.set()


def container_of(thing: Mapping[str, Any]) -> str:
    """The name of the container that a pod is of; empty for one that is not ours."""
    return str((thing["metadata"].get("labels") or {}).get(LABEL_CONTAINER, ""))


def pods_of(cluster: Cluster, namespace: str, name: str) -> Iterator[Json]:
    """The pods of one container, by asking."""
    return cluster.items(pods_path(namespace), labelSelector=f"{LABEL_CONTAINER}={name}")


def jobs_path(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"
