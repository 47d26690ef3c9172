"""What Jobs and pods say, as clusters write it: one case for each way in which a run can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from containers.kubernetes.reading import Ended, Pending, Running, Seen, pods_of_job, read
from containers.kubernetes.refusals import refusal
from containers.outcome import LOSSES, Reason, verdict
from containers.spec import ContainerSpec

NOW = datetime(2026, 12, 24, 12, 0, 0, tzinfo=UTC)
Json = dict[str, Any]


def at(seconds: float) -> str:
    """An instant so many seconds before NOW, as the API writes it."""
    return f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def job(*conditions: tuple[Any, ...], deleted: bool = False, **spec: Any) -> Json:
    metadata = {"name": "punctual-x-1", "uid": "u-1", "creationTimestamp": at(100)}
    if deleted:
        metadata["deletionTimestamp"] = at(1)
    found = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": f"{reason}!",
            "lastTransitionTime": at(ago[0] if ago else 5),
        }
        for kind, reason, *ago in conditions
    ]
    return {"metadata": metadata, "spec": spec, "status": {"startTime": at(100), "conditions": found}}


def pod(
    state: Json | None = None,
    *,
    phase: str = "Pending",
    node: str = "n1",
    deleted: float | None = None,
    grace: int = 0,
    **status: Any,
) -> Json:
    metadata: Json = {"name": "punctual-x-1-abcde", "creationTimestamp": at(99)}
    if deleted is not None:
        metadata |= {"deletionTimestamp": at(deleted), "deletionGracePeriodSeconds": grace}
    statuses = [] if state is None else [{"name": "sidecar", "state": {}}, {"name": "run", "state": state}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "startTime": at(98), "containerStatuses": statuses, **status},
    }


def waiting(reason: str, message: str = "") -> Json:
    return pod({"waiting": {"reason": reason, "message": message}})


def terminated(code: int, reason: str, message: str = "", **more: Any) -> Json:
    state = {
        "exitCode": code,
        "reason": reason,
        "message": message,
        "startedAt": more.pop("started_", at(60)),
        "finishedAt": at(10),
    }
    phase = "Failed" if code or "reason_" in more else "Succeeded"
    return pod({"terminated": state}, phase=phase, **more)


def condition(kind: str, status: str, reason: str, message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def disrupted(reason: str, ago: float = 11) -> dict[str, Any]:
    found = condition("DisruptionTarget", "True", reason, "the cluster says")
    return {"conditions": [{**found, "lastTransitionTime": at(ago)}]}


def see(a_job: Json, *pods: Json) -> Seen:
    return read(a_job, pods, NOW, 60.0)


WAITING = {
    "unscheduled": (
        pod(
            node="",
            conditions=[condition("PodScheduled", "False", "Unschedulable", "0/3 nodes: 3 Insufficient cpu")],
        ),
        Reason.UNSCHEDULABLE,
        "3 Insufficient cpu",
    ),
    "pull": (waiting("ErrImagePull", "manifest unknown"), Reason.IMAGE_PULL_FAILED, "manifest unknown"),
    "back-off": (waiting("ImagePullBackOff", "Back-off"), Reason.IMAGE_PULL_FAILED, "Back-off"),
    "name": (waiting("InvalidImageName", "bad"), Reason.IMAGE_PULL_FAILED, "InvalidImageName"),
    "never": (waiting("ErrImageNeverPull", "absent"), Reason.IMAGE_PULL_FAILED, "ErrImageNeverPull"),
    "secret": (waiting("CreateContainerConfigError", 'secret "db" not found'), Reason.SECRET_MISSING, '"db"'),
    "key": (
        waiting("CreateContainerConfigError", "couldn't find key p in Secret ns/db"),
        Reason.SECRET_MISSING,
        "key p",
    ),
    "root": (
        waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
        Reason.START_FAILED,
        "runAsNonRoot",
    ),
    "loop": (
        pod(
            initContainerStatuses=[
                {
                    "name": "init",
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                }
            ]
        ),
        Reason.CRASH_LOOP,
        "back-off 10s",
    ),
}


@pytest.mark.parametrize("case", WAITING)
def test_a_pod_that_cannot_start_says_why(case: str) -> None:
    a_pod, reason, words = WAITING[case]
    seen = see(job(), a_pod)
    assert isinstance(seen, Pending)
    assert seen.trouble is not None
    assert (seen.trouble.reason, seen.trouble.final) == (reason, case in {"name", "never"})
    assert words in seen.what


@pytest.mark.parametrize(
    "a_pod", [pod(), pod(node=""), waiting("ContainerCreating"), waiting("PodInitializing")]
)
def test_a_pod_on_its_way_is_in_no_trouble(a_pod: Json) -> None:
    seen = see(job(), a_pod)
    assert isinstance(seen, Pending)
    assert seen.trouble is None


def test_a_job_without_a_pod_waits_for_one() -> None:
    assert see(job()) == Pending("waiting for its pod to be made", podless="u-1")


REFUSALS = {
    "quota": ('pods "x-1" is forbidden: exceeded quota: q, requested: pods=1', "exceeded quota: q", None),
    "security": ('pods "x-1" is forbidden: violates PodSecurity "restricted:latest": …', ": violates", True),
    "range": (
        'pods "x-1" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
        ": maximum cpu usage",
        True,
    ),
    "no limit": ('pods "x-1" is forbidden: failed quota: q: must specify limits.cpu', "must specify", True),
    "account": (
        'pods "x-1" is forbidden: error looking up service account n/etl: serviceaccount "etl" not found',
        '"etl" not found',
        False,
    ),
    "webhook": ("Internal error occurred: failed calling webhook", "failed calling webhook", False),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_why_no_pod_is_made_is_told_by_the_newest_event(case: str) -> None:
    said, words, final = REFUSALS[case]
    events = [
        {"metadata": {}, "message": f"Error creating: {message}", "lastTimestamp": at(ago)}
        for message, ago in (("an older one", 9), (said, 3), ("an old one", 5))
    ]
    seen = refusal(events)
    assert seen is not None
    assert words in seen.what
    assert "x-1" not in seen.what  # each try has another name
    assert (None if seen.trouble is None else seen.trouble.final) is final
    assert refusal([]) is None


def test_only_pods_of_the_job_itself_are_its_pods() -> None:
    """An earlier Job of that name, and a pod with its labels that somebody made, are not to be read."""
    own, earlier, alone = (
        {"metadata": {"name": name, "ownerReferences": [{"kind": "Job", "name": "punctual-x-1", "uid": uid}]}}
        for name, uid in (("a", "u-1"), ("b", "u-0"), ("c", "u-2"))
    )
    del alone["metadata"]["ownerReferences"]
    assert pods_of_job(job(), [earlier, alone, own]) == [own]


def test_a_running_one_has_started_by_the_end_of_its_second() -> None:
    seen = see(job(), pod({"running": {"startedAt": at(60)}}, phase="Running"))
    assert isinstance(seen, Running)
    assert seen.started_at == NOW - timedelta(seconds=59)


ENDED = {
    "well": (job(), terminated(0, "Completed"), Reason.SUCCEEDED, "exit code 0"),
    "badly": (job(), terminated(3, "Error"), Reason.FAILED, "exit code 3"),
    "memory": (job(), terminated(137, "OOMKilled"), Reason.OUT_OF_MEMORY, "needed more memory"),
    "command": (
        job(),
        terminated(128, "StartError", 'exec: "nope": executable file not found in $PATH'),
        Reason.START_FAILED,
        '"nope": executable file not found',
    ),
    "command, without a time": (
        job(),
        terminated(128, "StartError", "nope", started_="1970-01-01T00:00:00Z"),
        Reason.START_FAILED,
        "cannot start: nope",
    ),
    "init container": (
        job(("Failed", "BackoffLimitExceeded")),
        pod(
            {"waiting": {"reason": "PodInitializing"}},
            phase="Failed",
            initContainerStatuses=[
                {"name": "fetch", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                {"name": "unpack", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
            ],
        ),
        Reason.START_FAILED,
        "its init container 'unpack' failed: exit code 137 (SIGKILL) (OOMKilled)",
    ),
    "unknown": (job(), terminated(137, "ContainerStatusUnknown"), Reason.LOST, "without leaving"),
    "evicted by pressure": (
        job(),
        terminated(
            137, "Error", reason_="Evicted", message_="low on memory", **disrupted("TerminationByKubelet")
        ),
        Reason.EVICTED,
        "the cluster says",
    ),
    "evicted by drain": (
        job(),
        terminated(143, "Error", deleted=1, **disrupted("EvictionByEvictionAPI")),
        Reason.EVICTED,
        "drained",
    ),
    "its own disk": (
        job(),
        terminated(137, "Error", reason_="Evicted", message_="usage exceeds the total limit"),
        Reason.OUT_OF_DISK,
        "exceeds the total limit",
    ),
    "evicted before it ran": (
        job(),
        pod(phase="Failed", reason="Evicted", message="low", **disrupted("TerminationByKubelet")),
        Reason.EVICTED,
        "the cluster says",
    ),
    "preempted": (
        job(),
        terminated(143, "Error", deleted=1, **disrupted("PreemptionByScheduler")),
        Reason.PREEMPTED,
        "higher priority",
    ),
    "taint": (
        job(),
        terminated(143, "Error", deleted=1, **disrupted("DeletionByTaintManager")),
        Reason.NODE_LOST,
        "its node",
    ),
    "node gone": (
        job(),
        pod(phase="Failed", **disrupted("DeletionByPodGC")),
        Reason.NODE_LOST,
        "its node is gone",
    ),
    "node silent": (
        job(),
        pod({"running": {"startedAt": at(90)}}, phase="Running", deleted=61),
        Reason.NODE_LOST,
        "its node n1 does not answer",
    ),
    "node refuses": (job(), pod(phase="Failed", reason="OutOfcpu", message="no"), Reason.LOST, "OutOfcpu"),
    "pod deleted": (job(), terminated(143, "Error", deleted=1), Reason.DELETED, "deleted its pod"),
    "job deleted": (
        job(deleted=True),
        terminated(143, "Error", deleted=1),
        Reason.DELETED,
        "deleted its Job",
    ),
    "job deleted, pod gone": (job(deleted=True), None, Reason.DELETED, "deleted its Job"),
    "deadline": (
        job(("FailureTarget", "DeadlineExceeded"), activeDeadlineSeconds=90),
        terminated(143, "Error", deleted=1),
        Reason.TIMED_OUT,
        "time limit",
    ),
    "deadline, not yet said": (
        job(activeDeadlineSeconds=90),
        terminated(143, "Error", deleted=1),
        Reason.TIMED_OUT,
        "time limit",
    ),
    "deadline, pod gone": (job(("Failed", "DeadlineExceeded")), None, Reason.TIMED_OUT, "time limit"),
    "well, pod gone": (job(("Complete", "CompletionsReached")), None, Reason.SUCCEEDED, "exit code 0"),
    "disrupted, pod gone": (job(("Failed", "PodFailurePolicy")), None, Reason.EVICTED, "PodFailurePolicy!"),
    "badly, pod gone": (job(("Failed", "BackoffLimitExceeded")), None, Reason.DELETED, "its pod is gone"),
    "told to end before it was evicted, it ends with 0": (
        job(),
        terminated(
            0, "Completed", reason_="Evicted", message_="low", **disrupted("TerminationByKubelet", ago=12)
        ),
        Reason.EVICTED,
        "evicted by its node (the cluster says); exit code 0",
    ),
    "a drained one ends with 0": (
        job(),
        terminated(0, "Completed", deleted=-20, grace=31, **disrupted("EvictionByEvictionAPI", ago=11)),
        Reason.EVICTED,
        "drained (the cluster says); exit code 0",
    ),
    "its node is drained after its end": (
        job(("Complete", "CompletionsReached")),
        terminated(0, "Completed", deleted=5, **disrupted("EvictionByEvictionAPI", ago=8)),
        Reason.SUCCEEDED,
        "exit code 0",
    ),
    "its node shuts down and it ends with 0": (
        job(),
        terminated(
            0,
            "Completed",
            reason_="Terminated",
            message_="node shutdown",
            **disrupted("TerminationByKubelet"),
        ),
        Reason.NODE_LOST,
        "shut down (node shutdown); exit code 0",
    ),
    "its node preempts it": (
        job(),
        terminated(143, "Error", reason_="Preempting", **disrupted("TerminationByKubelet")),
        Reason.PREEMPTED,
        "preempted on its node",
    ),
    "the deadline of its pod": (
        job(),
        terminated(0, "Completed", reason_="DeadlineExceeded", message_="too long"),
        Reason.TIMED_OUT,
        "the deadline of its pod (too long); exit code 0",
    ),
    "stopped by a worker that is gone, it ends with 0": (
        job(("FailureTarget", "DeadlineExceeded", 11), ("Failed", "DeadlineExceeded", 8)),
        terminated(0, "Completed", deleted=-20, grace=31),
        Reason.TIMED_OUT,
        "time limit",
    ),
    "the deadline came after its end": (
        job(("FailureTarget", "DeadlineExceeded", 8)),
        terminated(0, "Completed"),
        Reason.SUCCEEDED,
        "exit code 0",
    ),
    "somebody deletes its pod and it ends with 0": (
        job(),
        terminated(0, "Completed", deleted=-19, grace=30),
        Reason.DELETED,
        "deleted its pod; exit code 0",
    ),
    "a deleted pod that ends well": (
        job(),
        terminated(0, "Completed", deleted=1),
        Reason.SUCCEEDED,
        "code 0",
    ),
}


@pytest.mark.parametrize("case", ENDED)
def test_an_end_has_its_reason(case: str) -> None:
    a_job, a_pod, reason, words = ENDED[case]
    if a_pod is not None:  # a container and its pod each have a reason and a message
        for name in ("reason", "message"):
            if f"{name}_" in a_pod["status"]:
                a_pod["status"][name] = a_pod["status"].pop(f"{name}_")
    seen = see(a_job, *([] if a_pod is None else [a_pod]))
    assert isinstance(seen, Ended)
    spec = ContainerSpec(name="punctual-x-1", timeout_s=20)
    outcome = verdict(seen.exit, spec, seen.started_at)
    assert outcome.reason is reason
    assert words in outcome.message
    assert NOW - timedelta(seconds=100) <= outcome.started_at <= outcome.finished_at <= NOW
    assert (reason in LOSSES) is (reason.value in {"lost", "evicted", "preempted", "node_lost", "removed"})


def test_a_pod_that_is_being_ended_is_waited_for_until_its_node_is_silent_too_long() -> None:
    running = {"running": {"startedAt": at(90)}}
    assert isinstance(see(job(), pod(running, phase="Running", deleted=59)), Running)


def test_a_cancel_that_nobody_reported_is_no_time_out() -> None:
    seen = see(job(("Failed", "DeadlineExceeded"), activeDeadlineSeconds=1))
    assert isinstance(seen, Ended)
    spec = ContainerSpec(name="punctual-x-1", timeout_s=3600)
    assert verdict(seen.exit, spec, seen.started_at).reason is Reason.CANCELLED
