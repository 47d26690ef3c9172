"""What a Job and its pods say about a run; pure.

    no pod yet ─► pod waits ─► runs ─► its container has terminated
        │             └ trouble: unschedulable, no image, no secret, a crash loop
        └ the Job has ended without one: deadline, or somebody removed the pod

Sources: the API reference of Pod v1 and Job v1 (phases, container states, conditions), and for the
reasons of waiting containers the kubelet's. A cluster writes whole seconds, rounded down. So a start
is taken for the end of its second, that no time limit is ever early; an end too, but never later
than now.

What is told to end often ends with code 0, long before its work is done. So code 0 is a success only
where nothing was ending the pod by then: no disruption, no deadline, nobody who deleted it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from containers.kubernetes.merging import RUN
from containers.outcome import Exit, Reason, describe_code, one_line

Json = Mapping[str, Any]
SECOND = timedelta(seconds=1)

PULLING = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
    }
)
NO_IMAGE = frozenset({"InvalidImageName", "ErrImageNeverPull"})  # waiting brings none
NOT_MADE = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
# Of a terminated container: the runtime could not start the command.
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
# Of a terminated container: the kubelet does not know how it ended.
UNKNOWN = "ContainerStatusUnknown"
DISRUPTIONS = {
    "PreemptionByScheduler": (Reason.PREEMPTED, "preempted by a pod of a higher priority"),
    "DeletionByTaintManager": (Reason.NODE_LOST, "its node is not to be used any more, or does not answer"),
    "DeletionByPodGC": (Reason.NODE_LOST, "its node is gone"),
    "EvictionByEvictionAPI": (Reason.EVICTED, "evicted, as when a node is drained"),
    "TerminationByKubelet": (Reason.EVICTED, "evicted by its node"),
}
# Of a failed pod: what its node says.
POD_FAILURES = {
    "Preempting": (Reason.PREEMPTED, "preempted on its node"),
    "NodeLost": (Reason.NODE_LOST, "its node does not answer"),
    "NodeShutdown": (Reason.NODE_LOST, "its node was shut down"),
    "Shutdown": (Reason.NODE_LOST, "its node was shut down"),
    "Terminated": (Reason.NODE_LOST, "its node was shut down"),
    "DeadlineExceeded": (Reason.TIMED_OUT, "stopped at the deadline of its pod"),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not run; ``final`` where waiting cannot help."""

    reason: Reason
    message: str
    final: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """It has not started; ``what`` says for people what it waits for. ``podless``: the uid of its Job where
    that has no pod yet."""

    what: str
    trouble: Trouble | None = None
    podless: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    started_at: datetime
    pod: str


@dataclass(frozen=True, slots=True)
class Ended:
    """``pod`` is empty where it is gone, and with it its log. ``ran``: whether its command ever ran."""

    exit: Exit
    started_at: datetime
    pod: str = ""
    ran: bool = True


Seen = Pending | Running | Ended


def pods_of_job(job: Json, pods: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that its controller made: by the Job's uid, which no other of its name has had."""
    uid = job["metadata"]["uid"]
    return [
        pod
        for pod in pods
        if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())
    ]


def read(job: Json, pods: Iterable[Json], now: datetime, node_lost_s: float) -> Seen:
    """What there is to see of one run at ``now``."""
    newest = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)
    if newest is None:
        return _without_pod(job, now)
    return _Pod(job, newest, now, node_lost_s).read()


def instant(text: str) -> datetime:
    """A time stamp of the API (RFC 3339) as an aware datetime."""
    return datetime.fromisoformat(text)


def condition(thing: Json, kind: str) -> Json | None:
    """The condition of that type where it is True."""
    conditions = thing.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), None)


@dataclass(frozen=True, slots=True)
class _Pod:
    job: Json
    pod: Json
    now: datetime
    node_lost_s: float

    def read(self) -> Seen:
        state = self._state()
        if "terminated" in state:
            return self._terminated(state["terminated"])
        if self._status.get("phase") in ("Failed", "Succeeded"):
            return self._ended_unseen()
        if self._overdue():
            why = Exit(None, self.now, why=Reason.NODE_LOST, detail=f"{self._node} does not answer")
            return Ended(why, self._started_at(state), self._name)
        if "running" in state:
            return Running(self._started_at(state), self._name)
        return self._pending()

    @property
    def _status(self) -> Json:
        status: Json = self.pod.get("status") or {}
        return status

    @property
    def _name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def _node(self) -> str:
        return f"its node {self.pod.get('spec', {}).get('nodeName', '')}".rstrip()

    def _state(self) -> Json:
        statuses = self._status.get("containerStatuses") or ()
        return next((one.get("state") or {} for one in statuses if one["name"] == RUN), {})

    def _started_at(self, state: Json) -> datetime:
        """Of a command that could not be started some runtimes write the year 1970."""
        part = state.get("running") or state.get("terminated") or {}
        created = str(self.pod["metadata"]["creationTimestamp"])
        given = str(part.get("startedAt") or self._status.get("startTime") or created)
        return max(_end_of_second(given), _end_of_second(created))

    def _terminated(self, state: Json) -> Ended:
        code = int(state["exitCode"])
        finished_at = self._finished(state.get("finishedAt"))
        started_at = self._started_at({"terminated": state})
        reason, message = str(state.get("reason", "")), one_line(str(state.get("message", "")))
        if reason in NOT_STARTED:
            text = f"cannot start: {message}" if message else "the command cannot be started"
            return Ended(Exit(code, finished_at, start_error=text), started_at, self._name, ran=False)
        known = None if reason == UNKNOWN else code
        oom = reason == "OOMKilled"
        why, detail, stopped = self._cause(known, finished_at)
        ended = Exit(known, finished_at, oom, why=why, detail=detail, stopped=stopped and not oom)
        return Ended(ended, started_at, self._name)

    def _cause(self, code: int | None, finished_at: datetime) -> tuple[Reason | None, str, bool]:
        """The cluster's own reason, where it is not the command's end alone, and whether it was stopped.

        With code 0 only what was there by its end: afterwards its node may be drained, it had done its work.
        """
        by = finished_at if code == 0 else self.now
        why, detail = self._failed_by_its_node()
        if why is None:
            why, detail = self._disrupted(by)
        if why is not None:
            return why, detail, False
        if _deadline_passed(self.job, by):
            return None, "", True
        for thing, word in ((self.job, "Job"), (self.pod, "pod")):
            if _deleted_by(thing, by):
                return Reason.DELETED, f"somebody deleted its {word}", False
        return None, "", False

    def _disrupted(self, by: datetime) -> tuple[Reason | None, str]:
        found = condition(self.pod, "DisruptionTarget")
        if found is None or not _since(found, by):
            return None, ""
        reason, text = DISRUPTIONS.get(str(found.get("reason")), (Reason.EVICTED, "disrupted by its cluster"))
        message = one_line(str(found.get("message", "")), 200)
        return reason, f"{text} ({message})" if message else text

    def _failed_by_its_node(self) -> tuple[Reason | None, str]:
        """What its node says of a failed pod: more than the condition, which is one for all its reasons."""
        word = str(self._status.get("reason") or "")
        if self._status.get("phase") != "Failed" or not word:
            return None, ""
        message = one_line(str(self._status.get("message", "")), 200)
        if word == "Evicted":
            if condition(self.pod, "DisruptionTarget"):  # it was the node that was under pressure
                return None, ""
            return Reason.OUT_OF_DISK, f"it needed more disk than its limit ({message})"
        reason, text = POD_FAILURES.get(word, (Reason.LOST, f"its node did not run it: {word}"))
        return reason, f"{text} ({message})" if message else text

    def _ended_unseen(self) -> Ended:
        """The pod has ended and says nothing of the container: it never ran, or its node forgot it."""
        code = 0 if self._status["phase"] == "Succeeded" else None
        finished_at = self._finished(None)
        why, detail, stopped = self._cause(code, finished_at)
        start_error = ""
        if why is None and code is None and not stopped:
            start_error = self._failed_before()
        if why is None and code is None and not stopped and not start_error:
            why, detail = Reason.LOST, "its pod failed and does not say how"
        ended = Exit(code, finished_at, start_error=start_error, why=why, detail=detail, stopped=stopped)
        return Ended(ended, self._started_at({}), self._name)

    def _failed_before(self) -> str:
        """Which init container of the pod template ended it; empty where none did."""
        for one in self._status.get("initContainerStatuses") or ():
            state = (one.get("state") or {}).get("terminated") or {}
            if state.get("exitCode"):
                said = one_line(": ".join(filter(None, (state.get("reason"), state.get("message")))), 200)
                code = describe_code(int(state["exitCode"]))
                return f"its init container {one['name']!r} failed: {code}" + (f" ({said})" if said else "")
        return ""

    def _finished(self, given: str | None) -> datetime:
        return self.now if given is None else min(self.now, _end_of_second(given))

    def _overdue(self) -> bool:
        """It should have been gone a while ago, by its grace (which deletionTimestamp has in it)."""
        due = self.pod["metadata"].get("deletionTimestamp")
        return due is not None and self.now > instant(due) + timedelta(seconds=self.node_lost_s)

    def _pending(self) -> Pending:
        waiting = [state for state in self._waiting() if state.get("reason")]
        troubles = (_trouble(str(state["reason"]), str(state.get("message", ""))) for state in waiting)
        trouble = next((one for one in troubles if one is not None), None) or self._unscheduled()
        if trouble is not None:
            return Pending(trouble.message, trouble)
        if not self.pod.get("spec", {}).get("nodeName"):
            return Pending("waiting for a node")
        return Pending(f"being prepared on {self._node.removeprefix('its ')}: image, volumes")

    def _waiting(self) -> Iterator[Json]:
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in self._status.get(kind) or ():
                yield (status.get("state") or {}).get("waiting") or {}

    def _unscheduled(self) -> Trouble | None:
        for one in self._status.get("conditions") or ():
            if one["type"] == "PodScheduled" and one["status"] == "False":
                message = one_line(str(one.get("message") or one.get("reason") or ""))
                return Trouble(Reason.UNSCHEDULABLE, f"no node takes it: {message}")
        return None


def _trouble(word: str, message: str) -> Trouble | None:
    said = one_line(message)
    if word in PULLING:
        return Trouble(Reason.IMAGE_PULL_FAILED, f"its image cannot be pulled: {said or word}")
    if word in NO_IMAGE:
        return Trouble(Reason.IMAGE_PULL_FAILED, f"its image cannot be had ({word}): {said}", final=True)
    if word == "CrashLoopBackOff":
        return Trouble(Reason.CRASH_LOOP, f"a container of its pod ends again and again: {said}")
    if word not in NOT_MADE:
        return None
    if "secret" in said.lower():
        return Trouble(Reason.SECRET_MISSING, f"a secret is missing in the cluster: {said}")
    return Trouble(Reason.START_FAILED, f"its container cannot be made: {said or word}")


def is_over(job: Json) -> bool:
    """Whether the Job alone, with no pod to be had, is taken for the end of its run."""
    return _end_condition(job) is not None or "deletionTimestamp" in job["metadata"]


def _end_condition(job: Json) -> Json | None:
    return condition(job, "Complete") or condition(job, "Failed")


def _without_pod(job: Json, now: datetime) -> Seen:
    ended = _end_condition(job)
    if ended is None:
        if "deletionTimestamp" in job["metadata"]:
            gone = Exit(None, now, why=Reason.DELETED, detail="somebody deleted its Job")
            return Ended(gone, _job_start(job))
        return Pending("waiting for its pod to be made", podless=str(job["metadata"]["uid"]))
    finished_at = min(
        now, _end_of_second(ended.get("lastTransitionTime") or job["metadata"]["creationTimestamp"])
    )
    return Ended(_exit_without_pod(ended, finished_at), _job_start(job))


def _exit_without_pod(ended: Json, finished_at: datetime) -> Exit:
    if ended["type"] == "Complete":
        return Exit(0, finished_at)
    if ended.get("reason") == "DeadlineExceeded":
        return Exit(None, finished_at, stopped=True)
    if ended.get("reason") == "PodFailurePolicy":
        return Exit(None, finished_at, why=Reason.EVICTED, detail=one_line(str(ended.get("message", ""))))
    return Exit(None, finished_at, why=Reason.DELETED, detail="its pod is gone, and with it how it ended")


def _job_start(job: Json) -> datetime:
    return _end_of_second(job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"])


def _deadline_passed(job: Json, by: datetime) -> bool:
    """Whether the Job was being ended by its deadline ``by`` then, which is also how Punctual stops one.

    Its pod can be seen to end before the Job is seen to say why.
    """
    found = condition(job, "FailureTarget") or condition(job, "Failed")
    if found is not None:
        return found.get("reason") == "DeadlineExceeded" and _since(found, by)
    limit, begun = job["spec"].get("activeDeadlineSeconds"), job.get("status", {}).get("startTime")
    return limit is not None and begun is not None and instant(begun) + timedelta(seconds=limit) <= by


def _since(found: Json, by: datetime) -> bool:
    """Whether a condition was true ``by`` then; of one without a time nothing else is known."""
    given = found.get("lastTransitionTime")
    return not given or instant(given) <= by


def _deleted_by(thing: Json, by: datetime) -> bool:
    """Whether somebody had asked ``by`` then for its end; deletionTimestamp has the grace in it."""
    metadata = thing["metadata"]
    if not (due := metadata.get("deletionTimestamp")):
        return False
    return instant(due) - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0) <= by


def _end_of_second(text: str) -> datetime:
    return instant(text) + SECOND
