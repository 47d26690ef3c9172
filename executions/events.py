"""Events: immutable statements about a run, and how they travel (pure).

A message on the exchange is one JSON object, ``{"events": [...]}``. An event has ``type``,
``execution`` (UUID), ``attempt``, ``at`` (ISO 8601, UTC) and the optional fields of
``Event``. A statement about many runs at once (JOB_QUEUED) has ``runs``, a list of
[execution, attempt, generation], in place of ``execution`` and ``attempt``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from executions.ids import event_id
from executions.states import EventType
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shortened, shown

MOST_ATTEMPTS = 32767
MOST_MESSAGE = 2000
MOST_NAME = 300
REATTACHED = "reattached"
REPORTED = "reported"
"""The reason of an outcome that was reported from elsewhere (executions/reporting.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to one attempt of one execution.

    ``retryable`` is False where another attempt cannot end otherwise (a template that names
    what is not there). ``started_at`` and ``queued_at`` repeat what earlier events said, so
    that the row comes out the same in whatever order they arrive. ``generation`` (of JOB_QUEUED):
    what was sent in an earlier one than the row's will not start; with a ``reason`` it was delivered, and
    waits for something else than a worker. ``due_at`` (of JOB_RESUMED):
    when it is due now. The ``reason`` of a JOB_STARTED
    is "reattached" where the container was there already. ``gone`` is False where something of the
    attempt may still run (its engine does not answer).
    """

    type: EventType
    execution_id: UUID
    attempt: int
    at: datetime
    worker: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    retryable: bool = True
    generation: int = 0
    due_at: datetime | None = None
    gone: bool = True

    def __post_init__(self) -> None:
        """A message is for people, and is kept, sent and shown in many places: none may be large."""
        object.__setattr__(self, "message", shortened(self.message, MOST_MESSAGE))

    @property
    def id(self) -> UUID:
        return event_id(self.execution_id, self.attempt, self.type, self._distinction())

    def _distinction(self) -> str:
        """What may happen to one attempt again and again: each time is a statement of its own."""
        if self.type is EventType.STARTED:
            return f"{self.worker} {self.at.isoformat()}"
        if self.type in {EventType.PAUSED, EventType.RESUMED}:
            return self.at.isoformat()
        if self.type is EventType.QUEUED and self.reason:
            return f"{self.generation} {self.reason} {self.at.isoformat()}"
        if self.type is EventType.QUEUED and self.generation:
            return str(self.generation)
        return ""

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": self.type,
            "execution": str(self.execution_id),
            "attempt": self.attempt,
            "at": _text(self.at),
        }
        for name in ("worker", "reason", "message", "exit_code"):
            value = getattr(self, name)
            if value not in ("", None):
                found[name] = value
        for name in ("queued_at", "started_at", "due_at"):
            if (instant := getattr(self, name)) is not None:
                found[name] = _text(instant)
        if self.generation:
            found["generation"] = self.generation
        if not self.retryable:
            found["retryable"] = False
        if not self.gone:
            found["gone"] = False
        return found


def encode(events: Iterable[Event]) -> bytes:
    return json.dumps({"events": [event.to_json() for event in events]}, separators=(",", ":")).encode()


def encode_queued(runs: Sequence[tuple[str, int, int]], at: datetime) -> bytes:
    """JOB_QUEUED of a batch: (execution, attempt, generation) of each run that the broker has confirmed."""
    item = {"type": EventType.QUEUED, "at": _text(at), "runs": runs}
    return json.dumps({"events": [item]}, separators=(",", ":")).encode()


def decode(body: bytes | str) -> list[Event]:
    """The events of a message. InvalidValue, with the reason, for what is none."""
    try:
        items = json.loads(body)["events"]
        return [event for item in items for event in _expand(item)]
    except InvalidValue:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidValue(
            f"not a message of events: {type(error).__name__}: {shortened(str(error))}"
        ) from error


def _expand(item: dict[str, Any]) -> list[Event]:
    runs = item["runs"] if "runs" in item else [_run_of(item)]
    common: dict[str, Any] = {
        "type": EventType(item["type"]),
        "at": _instant(item["at"]),
        "worker": shortened(_storable(item.get("worker", "")), MOST_NAME),
        "reason": shortened(_storable(item.get("reason", "")), MOST_NAME),
        "message": _storable(item.get("message", "")),
        "exit_code": _exit_code(item.get("exit_code")),
        "queued_at": _instant(item["queued_at"]) if "queued_at" in item else None,
        "started_at": _instant(item["started_at"]) if "started_at" in item else None,
        "due_at": _instant(item["due_at"]) if "due_at" in item else None,
        "retryable": bool(item.get("retryable", True)),
        "gone": bool(item.get("gone", True)),
    }
    return [
        Event(
            execution_id=UUID(run),
            attempt=_attempt(attempt),
            generation=int(generation),
            **common,
        )
        for run, attempt, generation in runs
    ]


def _run_of(item: dict[str, Any]) -> list[Any]:
    return [item["execution"], item["attempt"], item.get("generation", 0)]


def _storable(value: object) -> str:
    """As PostgreSQL takes it: a NUL or half a surrogate pair must not cost a run its outcome."""
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def _attempt(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ATTEMPTS:
        raise InvalidValue(f"attempt {shown(value)} is not a number from 1 to {MOST_ATTEMPTS}")
    return value


def _exit_code(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31):
        return value
    raise InvalidValue(f"exit code {shown(value)} is not a whole number")


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise InvalidValue(f"{shown(text)} has no time zone")
    return instant.astimezone(UTC)


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()
