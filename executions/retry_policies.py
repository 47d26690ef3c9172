"""After which failures a run is tried again, after what pause and for how long (pure).

``retryPolicy`` in REST, in files, in the admin and, as ``retry``, in a RunSpec is the object that
``read_policy`` takes; ``to_json`` gives its normal form, without what is the default. The number of
retries and the first pause are fields of the job of their own, older than this one.

    pause before retry n:  fixed        delay
                           exponential  delay * factor ** (n - 1), at most max_delay
    of which chance takes up to the part ``jitter`` away; of one attempt of one run always the same part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any
from uuid import UUID

from containers.fields import Errors, Fields, choice, whole
from containers.outcome import Reason
from executions.exit_codes import MOST_CODE, codes_text
from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown

LEAST_FACTOR, MOST_FACTOR, FACTOR = 1.0, 10.0, 2.0
MAX_DELAY = timedelta(days=1)
FIELDS = ("backoff", "factor", "maxDelay", "jitter", "reasons", "exitCodes", "maxElapsed")
RETRIED = (
    *(
        str(reason)
        for reason in (
            Reason.FAILED,
            Reason.TIMED_OUT,
            Reason.OUT_OF_MEMORY,
            Reason.OUT_OF_DISK,
            Reason.START_FAILED,
            Reason.START_TIMED_OUT,
            Reason.IMAGE_PULL_FAILED,
            Reason.SECRET_MISSING,
            Reason.UNSCHEDULABLE,
            Reason.CRASH_LOOP,
        )
    ),
    "reported",
)
"""The reasons of failures that another attempt may heal; losses are not the run's own, and not among them."""
_MILLISECOND = timedelta(milliseconds=1)
_SHOWN = 4


class Backoff(StrEnum):
    FIXED = "fixed"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``reasons``, ``exit_codes``: a failure with one of either is retried; neither given: all are."""

    retries: int = 0
    delay: timedelta = timedelta(0)
    backoff: str = str(Backoff.FIXED)
    factor: float = FACTOR
    max_delay: timedelta = MAX_DELAY
    jitter: float = 0.0
    reasons: tuple[str, ...] = ()
    exit_codes: tuple[int, ...] = ()
    max_elapsed: timedelta | None = None

    def full_pause(self, retry: int) -> timedelta:
        """Before the ``retry``-th further attempt (the first is 1), before chance takes of it."""
        if self.backoff != Backoff.EXPONENTIAL:
            return self.delay
        seconds = self.delay.total_seconds() * self.factor ** (retry - 1)
        return timedelta(seconds=min(seconds, self.max_delay.total_seconds()))

    def pause(self, retry: int, run: UUID) -> timedelta:
        """What is really waited, to the millisecond; for the same retry of the same run always the same."""
        full = self.full_pause(retry)
        return full - full * self.jitter * _chance(run, retry) // _MILLISECOND * _MILLISECOND

    def refusal(self, reason: str, exit_code: int | None) -> str:
        """Why such a failure is not retried; empty where it is."""
        if not self.reasons and not self.exit_codes:
            return ""
        if reason in self.reasons or exit_code in self.exit_codes:
            return ""
        return f"its retry policy retries only {self._conditions()}"

    def too_late(self, due: timedelta) -> str:
        """Why an attempt that is due so long after the first start is not made; empty where it is."""
        if self.max_elapsed is None or due <= self.max_elapsed:
            return ""
        return f"its retries end {format_duration(self.max_elapsed)} after its first start"

    def to_json(self) -> dict[str, Any]:
        """What REST calls ``retryPolicy``: without the number of retries and the first pause."""
        said = {
            "backoff": self.backoff,
            "factor": self.factor,
            "maxDelay": format_duration(self.max_delay),
            "jitter": self.jitter,
            "reasons": list(self.reasons),
            "exitCodes": list(self.exit_codes),
            "maxElapsed": None if self.max_elapsed is None else format_duration(self.max_elapsed),
        }
        return {name: value for name, value in said.items() if value != _DEFAULTS[name]}

    def sentence(self) -> str:
        """All of it for people."""
        if not self.retries:
            return "none"
        times = "once" if self.retries == 1 else f"up to {self.retries} times"
        said = [f"{times}, after {self._pauses()}"]
        if self.jitter:
            said.append(f"each up to {self.jitter:.0%} shorter by chance")
        if self.reasons or self.exit_codes:
            said.append(f"only {self._conditions()}")
        if self.max_elapsed is not None:
            said.append(f"none later than {format_duration(self.max_elapsed)} after its first start")
        return "; ".join(said)

    def _pauses(self) -> str:
        pauses = [self.full_pause(number) for number in range(1, self.retries + 1)]
        if len(set(pauses)) == 1:
            return format_duration(_in_millis(pauses[0]))
        listed = ", ".join(format_duration(_in_millis(pause)) for pause in pauses[:_SHOWN])
        return f"{listed}, …, {format_duration(_in_millis(pauses[-1]))}" if len(pauses) > _SHOWN else listed

    def _conditions(self) -> str:
        reasons = [reason.replace("_", " ") for reason in self.reasons]
        said = [f"after {' or '.join(reasons)}"] if reasons else []
        if self.exit_codes:
            plural = "s" if len(self.exit_codes) > 1 else ""
            said.append(f"after exit code{plural} {codes_text(self.exit_codes)}")
        return " or ".join(said)


_DEFAULTS: Mapping[str, Any] = {
    "backoff": str(Backoff.FIXED),
    "factor": FACTOR,
    "maxDelay": format_duration(MAX_DELAY),
    "jitter": 0.0,
    "reasons": [],
    "exitCodes": [],
    "maxElapsed": None,
}


def _chance(run: UUID, retry: int) -> float:
    """From 0 to below 1, by the run and the retry."""
    digest = blake2b(run.bytes + retry.to_bytes(2), digest_size=6).digest()
    return int.from_bytes(digest) / (1 << 48)


def _in_millis(length: timedelta) -> timedelta:
    return length // _MILLISECOND * _MILLISECOND


def read_policy(given: object, root: str = "retryPolicy") -> RetryPolicy:
    """The policy that ``given``, a JSON value, states. InvalidFields: all that is wrong, by its path."""
    errors: Errors = {}
    fields = Fields({} if given is None else given, root, FIELDS, errors)
    policy = RetryPolicy(
        backoff=fields.get("backoff", choice(Backoff), str(Backoff.FIXED)),
        factor=fields.get("factor", _number(LEAST_FACTOR, MOST_FACTOR), FACTOR),
        max_delay=fields.get("maxDelay", _length, MAX_DELAY),
        jitter=fields.get("jitter", _number(0.0, 1.0), 0.0),
        reasons=_read_all(fields, "reasons", choice(RETRIED)),
        exit_codes=_read_all(fields, "exitCodes", whole(1, MOST_CODE)),
        max_elapsed=fields.get("maxElapsed", _length, None),
    )
    if policy.backoff == Backoff.FIXED:
        for name, value, default in (
            ("factor", policy.factor, FACTOR),
            ("maxDelay", policy.max_delay, MAX_DELAY),
        ):
            if value != default:
                fields.complain(name, "It is for backoff 'exponential': all pauses are the same here.")
    if errors:
        raise InvalidFields(errors)
    return policy


def normal_policy(given: object, root: str = "retryPolicy") -> dict[str, Any]:
    """The normal form of what ``read_policy`` reads."""
    return read_policy(given, root).to_json()


def _read_all(fields: Fields, name: str, read: Any) -> tuple[Any, ...]:
    """The items of a list, each once, in order."""
    found = []
    for number, (_, item) in enumerate(fields.items(name)):
        try:
            found.append(read(item))
        except InvalidValue as error:
            fields.complain(f"{name}.{number}", error.message)
    return tuple(sorted(set(found)))


def _number(least: float, most: float) -> Any:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise InvalidValue(f"{shown(value)} is not a number from {least:g} to {most:g}.")
        return float(value)

    return read


def _length(value: object) -> timedelta:
    return parse_duration(value, minimum=_MILLISECOND)
