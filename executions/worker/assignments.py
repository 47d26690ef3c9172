"""What a run's message says (pure): the arguments of the task ``executions.run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from executions.entries import Flag, Popped
from executions.events import MOST_ATTEMPTS
from executions.ids import due_of
from executions.runspecs import Spec
from scheduler_project.kernel.clock import from_micros, to_micros
from scheduler_project.kernel.errors import InvalidValue

TASK = "executions.run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One attempt that a worker is given. ``queued_at``: when the beat published it."""

    execution_id: UUID
    attempt: int
    queued_at: datetime
    spec: Spec
    spec_id: UUID
    generation: int = 0
    flags: Flag = Flag.NONE

    @property
    def key(self) -> tuple[UUID, int]:
        """What claims and leases know the attempt by."""
        return self.execution_id, self.attempt

    @property
    def scheduled_for(self) -> datetime:
        """The planned time, to the millisecond, as the execution's id carries it."""
        return due_of(self.execution_id)


def task_id(execution_id: UUID | str, attempt: int) -> str:
    """Celery's id of the task: what ``celery control revoke`` takes."""
    return f"{execution_id}:{attempt}"


def message_body(run: Popped, spec_json: bytes, queued_at: datetime) -> bytes:
    """The JSON of a Celery protocol-2 message: no positional arguments, these by keyword, no canvas.

    Written out, not encoded: ``spec_json`` is the canonical JSON of the RunSpec, and nothing else in it
    needs quoting.
    """
    return _BODY % (
        run.text_id.encode(),
        run.attempt,
        run.generation,
        run.flags,
        spec_json,
        to_micros(queued_at),
    )


_BODY = (
    b'[[],{"execution":"%b","attempt":%d,"generation":%d,"flags":%d,"spec":%b,"queued":%d},'
    b'{"callbacks":null,"errbacks":null,"chain":null,"chord":null}]'
)


def read_arguments(arguments: Mapping[str, Any]) -> Assignment:
    """The assignment in a message. InvalidValue, with the reason, for what is none."""
    try:
        spec = Spec.from_json(arguments["spec"])
        attempt = int(arguments["attempt"])
        if not 1 <= attempt <= MOST_ATTEMPTS:
            raise ValueError(f"attempt {attempt} is not in 1 to {MOST_ATTEMPTS}")
        return Assignment(
            execution_id=UUID(arguments["execution"]),
            attempt=attempt,
            queued_at=from_micros(int(arguments["queued"])).astimezone(UTC),
            spec=spec,
            spec_id=spec.id,
            generation=int(arguments.get("generation", 0)),
            flags=Flag(int(arguments["flags"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"not a run: {type(error).__name__}: {error}") from error
