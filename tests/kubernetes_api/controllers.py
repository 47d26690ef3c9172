"""The control loops that matter to a Job: its own controller, garbage collection, TTL.

All look at what is there after each change, as the real ones do, rather than at what changed.
"""

from __future__ import annotations

import copy
import logging
import threading
import uuid
from datetime import datetime, timedelta
from typing import Any

from tests.kubernetes_api.admission import Admission
from tests.kubernetes_api.clock import cluster_now
from tests.kubernetes_api.store import FOREGROUND, ORPHAN, Problem, Store, now_text, owned_by, owners

Json = dict[str, Any]
TRACKING = "batch.kubernetes.io/job-tracking"
TERMINAL = ("Succeeded", "Failed")
TICK_S = 0.2
logger = logging.getLogger(__name__)


class Controllers:
    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        self.paused = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        version = 0
        while not self._closed.is_set():
            version = self._store.wait(version, TICK_S)  # deadlines pass without a change
            if self.paused:
                self._closed.wait(TICK_S)
                continue
            try:
                for job in self._store.everywhere("jobs"):
                    _JobControl(self._store, self._admission, job).reconcile()
                self._collect()
            except Problem:
                logger.debug("a controller came too late", exc_info=True)

    def _collect(self) -> None:
        """Garbage: what the owner of is gone, or is being deleted with its dependents first."""
        jobs = {job["metadata"]["uid"]: job for job in self._store.everywhere("jobs")}
        pods = self._store.everywhere("pods")
        for pod in pods:
            for ref in owners(pod):
                owner = jobs.get(ref["uid"])
                if owner is None or FOREGROUND in owner["metadata"].get("finalizers", ()):
                    self._end(pod, orphan=owner is None)
        for job in jobs.values():
            held = job["metadata"].get("finalizers") or ()
            if FOREGROUND in held and not any(owned_by(pod, job) for pod in pods):
                self._release("jobs", job, FOREGROUND)
            if ORPHAN in held:
                self._orphan([pod for pod in pods if owned_by(pod, job)])
                self._release("jobs", job, ORPHAN)

    def _end(self, pod: Json, *, orphan: bool) -> None:
        metadata = pod["metadata"]
        if orphan:
            self._release("pods", pod, TRACKING)
        if "deletionTimestamp" not in metadata:
            self._store.delete("pods", metadata["namespace"], metadata["name"], {})

    def _release(self, resource: str, thing: Json, finalizer: str) -> None:
        def edit(held: Json) -> None:
            finalizers = [one for one in held["metadata"].get("finalizers", []) if one != finalizer]
            held["metadata"]["finalizers"] = finalizers

        self._store.change(resource, thing["metadata"]["namespace"], thing["metadata"]["name"], edit)

    def _orphan(self, pods: list[Json]) -> None:
        for pod in pods:
            metadata = pod["metadata"]
            self._store.change(
                "pods",
                metadata["namespace"],
                metadata["name"],
                lambda held: held["metadata"].update(ownerReferences=[], finalizers=[]),
            )


class _JobControl:
    """One look at one Job."""

    def __init__(self, store: Store, admission: Admission, job: Json) -> None:
        self._store = store
        self._admission = admission
        self._job = job
        self._namespace = job["metadata"]["namespace"]
        self._name = job["metadata"]["name"]

    def reconcile(self) -> None:
        found = self._store.select("pods", self._namespace)[0]
        pods = [pod for pod in found if owned_by(pod, self._job)]
        if "deletionTimestamp" in self._job["metadata"]:
            return self._untrack(pods)
        if _true(self._job, "Complete") or _true(self._job, "Failed"):
            self._untrack(pods)
            return self._expire()
        if "startTime" not in self._job["status"]:
            self._status(lambda status: status.update(startTime=now_text()))
            return None
        return self._advance(pods)

    def _advance(self, pods: list[Json]) -> None:
        failing = _true(self._job, "FailureTarget") or self._failure(pods)
        living = [pod for pod in pods if pod["status"].get("phase") not in TERMINAL]
        succeeded = any(pod["status"].get("phase") == "Succeeded" for pod in pods)
        if failing:
            self._fail(failing, living)
        elif succeeded or self._job["status"].get("succeeded"):
            self._finish("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        elif not pods:
            self._create_pod()
        self._count(pods)
        self._untrack([pod for pod in pods if pod["status"].get("phase") in TERMINAL])

    def _failure(self, pods: list[Json]) -> Json | None:
        """Why the Job has to fail, or None."""
        spec, status = self._job["spec"], self._job["status"]
        limit = spec.get("activeDeadlineSeconds")
        begun = datetime.fromisoformat(status["startTime"])
        if limit is not None and cluster_now() >= begun + timedelta(seconds=limit):
            return {
                "reason": "DeadlineExceeded",
                "message": "Job was active longer than specified deadline",
            }
        failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
        for pod in failed:
            if message := _policy_match(spec, pod):
                return {"reason": "PodFailurePolicy", "message": message}
        if len(failed) + status.get("failed", 0) > spec.get("backoffLimit", 6):
            return {
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
            }
        return None

    def _fail(self, failing: Json, living: list[Json]) -> None:
        """First the target, then the end of every pod, then the condition."""
        self._condition("FailureTarget", failing["reason"], failing["message"])
        for pod in living:
            if "deletionTimestamp" not in pod["metadata"]:
                self._store.delete("pods", self._namespace, pod["metadata"]["name"], {})
        if not living:
            self._finish("Failed", failing["reason"], failing["message"])

    def _finish(self, kind: str, reason: str, message: str) -> None:
        self._condition(kind, reason, message)
        if kind == "Complete":
            self._status(lambda status: status.setdefault("completionTime", now_text()))

    def _expire(self) -> None:
        kept = self._job["spec"].get("ttlSecondsAfterFinished")
        ended = _true(self._job, "Complete") or _true(self._job, "Failed")
        if kept is None or ended is None:
            return
        if cluster_now() >= datetime.fromisoformat(ended["lastTransitionTime"]) + timedelta(seconds=kept):
            self._store.delete("jobs", self._namespace, self._name, {"propagationPolicy": "Foreground"})

    def _count(self, pods: list[Json]) -> None:
        phases = [pod["status"].get("phase", "Pending") for pod in pods]
        terminating = [
            pod
            for pod in pods
            if "deletionTimestamp" in pod["metadata"] and pod["status"].get("phase") not in TERMINAL
        ]

        def edit(status: Json) -> None:
            status["active"] = sum(phase not in TERMINAL for phase in phases) - len(terminating)
            status["terminating"] = len(terminating)
            status["ready"] = phases.count("Running")
            status["succeeded"] = max(status.get("succeeded", 0), phases.count("Succeeded"))
            status["failed"] = max(status.get("failed", 0), phases.count("Failed"))

        self._status(edit)

    def _create_pod(self) -> None:
        template = copy.deepcopy(self._job["spec"]["template"])
        metadata = template.setdefault("metadata", {})
        uid = self._job["metadata"]["uid"]
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": self._name,
            "controller-uid": uid,
            "job-name": self._name,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": f"{self._name}-{uuid.uuid4().hex[:5]}",
                "labels": {**metadata.get("labels", {}), **labels},
                "finalizers": [TRACKING, *metadata.get("finalizers", [])],
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "name": self._name,
                        "uid": uid,
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        }
        if refusal := self._admission.refusal(self._namespace, pod):
            self._say("FailedCreate", f"Error creating: {refusal}")
        else:
            self._store.create("pods", self._namespace, pod)

    def _say(self, reason: str, message: str) -> None:
        """An event of the Job; one that is there already is counted, once a second."""
        name = f"{self._name}.{reason.lower()}"

        def again(event: Json) -> None:
            if event["lastTimestamp"] != now_text():
                event.update(message=message, count=event["count"] + 1, lastTimestamp=now_text())

        if self._store.change("events", self._namespace, name, again) is None:
            of = {"kind": "Job", "name": self._name, "uid": self._job["metadata"]["uid"]}
            event = {"metadata": {"name": name}, "involvedObject": of, "reason": reason, "type": "Warning"}
            seen = {"message": message, "count": 1, "firstTimestamp": now_text(), "lastTimestamp": now_text()}
            self._store.create("events", self._namespace, {**event, **seen})

    def _untrack(self, pods: list[Json]) -> None:
        def edit(pod: Json) -> None:
            finalizers = [one for one in pod["metadata"].get("finalizers", []) if one != TRACKING]
            pod["metadata"]["finalizers"] = finalizers

        for pod in pods:
            self._store.change("pods", self._namespace, pod["metadata"]["name"], edit)

    def _condition(self, kind: str, reason: str, message: str) -> None:
        set_condition(
            self._store,
            "jobs",
            self._job,
            {"type": kind, "status": "True", "reason": reason, "message": message},
        )

    def _status(self, edit: Any) -> None:
        self._store.change("jobs", self._namespace, self._name, lambda job: edit(job["status"]))


def set_condition(store: Store, resource: str, thing: Json, condition: Json) -> None:
    """Add or change a condition; its times are those of the change."""

    def edit(held: Json) -> None:
        conditions = held["status"].setdefault("conditions", [])
        old = next((one for one in conditions if one["type"] == condition["type"]), None)
        if old is not None and all(old.get(name) == value for name, value in condition.items()):
            return
        if old is not None:
            conditions.remove(old)
        conditions.append({**condition, "lastProbeTime": now_text(), "lastTransitionTime": now_text()})

    store.change(resource, thing["metadata"]["namespace"], thing["metadata"]["name"], edit)


def _true(thing: Json, kind: str) -> Json | None:
    conditions = thing["status"].get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), None)


def _policy_match(spec: Json, pod: Json) -> str:
    """The message of the first FailJob rule that matches a failed pod's conditions."""
    for number, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        for wanted in rule.get("onPodConditions") or ():
            if rule["action"] == "FailJob" and _true(pod, wanted["type"]):
                name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                return f"Pod {name} has condition {wanted['type']} matching FailJob rule at index {number}"
    return ""
