"""How a run stands, in a sentence for people: what it waits for, why it did not run, where to look (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from executions.states import State
from scheduler_project.kernel.durations import format_duration

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``due``: when it will be sent, None where it waits for something else than a time."""

    state: State
    attempt: int
    reason: str
    message: str
    worker: str
    due: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    asked_to_stop: bool


def describe_standing(run: Standing, now: datetime) -> str:
    return _SENTENCES[run.state](run, now)


def _waiting(run: Standing, now: datetime) -> str:
    tried = "" if run.attempt == 1 else f" Attempt {run.attempt - 1} failed; attempt {run.attempt} follows."
    if run.queued_at is not None:
        return f"Sent to the workers; none has begun it yet.{tried}"
    if run.due is None:
        return (
            f"Waits for leave to start: others go first, or the limit on what is caught up is reached.{tried}"
        )
    if run.due <= now:
        return f"Due; it is sent to a worker at the next opportunity.{tried}"
    left = max(_SECOND, (run.due - now) // _SECOND * _SECOND)
    at = f"{run.due.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"Waits for its time: due in {format_duration(left)}, at {at}.{tried}"


def _active(run: Standing, _now: datetime) -> str:
    where = f" on {run.worker}" if run.worker else ""
    return f"Asked to stop; it still runs{where}." if run.asked_to_stop else f"Runs{where}."


def _paused(_run: Standing, _now: datetime) -> str:
    return "Its job is paused: this run waits until the job is resumed."


def _completed(_run: Standing, _now: datetime) -> str:
    return "Ended as it should."


def _failed(run: Standing, _now: datetime) -> str:
    tries = "" if run.attempt == 1 else f" at the last of {run.attempt} attempts"
    if run.started_at is None:
        return f"Failed before it began{tries}{_because(run)}."
    return f"Failed{tries}{_because(run)}. Its output is at the end of this page."


def _cancelled(run: Standing, _now: datetime) -> str:
    became = "Did not run" if run.started_at is None else "Was stopped"
    why = _WHY.get(run.reason)
    return f"{became}{_because(run)}." if why is None else f"{became}, because {why}{_because(run)}."


def _because(run: Standing) -> str:
    return f": {run.message.rstrip('.')}" if run.message else ""


_WHY = {  # the rest say it in their message
    "skipped_overlap": "a run before it had not ended",
    "skipped_misfire": "its time had passed",
    "skipped_paused": "its job was paused",
    "replaced": "the next run took its place",
}
_SENTENCES: dict[State, Callable[[Standing, datetime], str]] = {
    State.WAITING: _waiting,
    State.ACTIVE: _active,
    State.PAUSED: _paused,
    State.COMPLETED_NORMALLY: _completed,
    State.COMPLETED_ABNORMALLY: _failed,
    State.CANCELLED: _cancelled,
}
