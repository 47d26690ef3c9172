"""Why a Job has no pod: what its controller says of its tries to make one.

A cluster takes every Job. Quotas, ranges of limits, pod security and service accounts are asked when its
controller makes the pod, and that they refuse it is written nowhere but in an event. (A Job without a pod
is rare, so events are asked for, and not watched.)
"""

from __future__ import annotations

from collections.abc import Iterable

from containers.kubernetes.cluster import Cluster, Refused
from containers.kubernetes.reading import Json, Pending, Trouble
from containers.outcome import Reason, one_line
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic

ASK_AFTER_S = 3.0  # a pod is usually made within one
FORBIDDEN = " is forbidden: "
OVER_QUOTA = "exceeded quota"  # as others end there is room again
MADE_LATER = "service account"  # what may be made a moment after the Job


class PodRefusals:
    """The refusals of one Job's pod, asked for when it has had none for a while."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/events"
        self._delays = exponential(ASK_AFTER_S, cap=30.0)
        self._ask_at = monotonic() + ASK_AFTER_S
        self._known: Pending | None = None

    def explain(self, seen: Pending) -> Pending:
        """``seen``, or why there is no pod where that is what it waits for."""
        if not seen.podless:
            return seen
        if monotonic() >= self._ask_at:
            self._ask_at = monotonic() + next(self._delays)
            self._known = self._ask(seen.podless) or self._known
        return self._known or seen

    def _ask(self, uid: str) -> Pending | None:
        fields = f"involvedObject.uid={uid},reason=FailedCreate"
        try:
            return refusal(self._cluster.items(self._path, fieldSelector=fields))
        except (Refused, RuntimeUnavailable):
            return None  # without the right to, or an answer, it waits as it did


def refusal(events: Iterable[Json]) -> Pending | None:
    """What the newest of a Job's events of the reason FailedCreate means for its start."""
    newest = max(events, key=_last_seen, default=None)
    if newest is None:
        return None
    text = str(newest.get("message") or "").removeprefix("Error creating: ")
    # Without the name of the pod, which is another one at each try.
    said = one_line(text.partition(FORBIDDEN)[2] or text)
    if OVER_QUOTA in said:
        return Pending(f"no room in the namespace for its pod: {said}")
    final = FORBIDDEN in text and MADE_LATER not in said
    trouble = Trouble(Reason.START_FAILED, f"the cluster refuses its pod: {said}", final)
    return Pending(trouble.message, trouble)


def _last_seen(event: Json) -> str:
    given = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return str(given or "")
