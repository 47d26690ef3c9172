"""State changes, read from the database: new rows, and new events in the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from executions.models import ExecutionEvent

OVERLAP = timedelta(seconds=5)  # a transaction may commit later than one that has stamped its rows after it
REACH = timedelta(days=2)  # runs that are due earlier than this before the start are not shown
LIMIT = 500


@dataclass(frozen=True, slots=True)
class Change:
    """``state`` is the public state that the run has come to."""

    at: datetime
    job: str
    execution_id: UUID
    state: str
    detail: str


class Changes:
    """What has changed since ``since``, each change once. Needs Django to be set up."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._rows_from = since
        self._events_from = since
        self._seen: dict[tuple[UUID, UUID | None], datetime] = {}
        self._jobs: dict[UUID, str] = {}

    def new(self) -> list[Change]:
        """The changes since the last call, at most some hundred, in the order in which they happened."""
        found = [*self._new_rows(), *self._new_events()]
        horizon = min(self._rows_from, self._events_from) - OVERLAP
        self._seen = {key: at for key, at in self._seen.items() if at > horizon}
        return sorted(found, key=lambda change: change.at)

    def _new_rows(self) -> list[Change]:
        """Runs that have come to be Waiting; of what was skipped there is an event."""
        from executions.models import Execution

        rows = Execution.objects.filter(id__gte=self._lowest(), created_at__gt=self._from(self._rows_from))
        found = []
        for row in rows.order_by("created_at").select_related("spec")[:LIMIT]:
            self._rows_from = max(self._rows_from, row.created_at)
            if self._note((row.id, None), row.created_at) and row.missed == 0:
                job = job_name(row.spec.body)
                due = f"due {instant_text(row.scheduled_for)}"
                found.append(Change(row.created_at, job, row.id, "Waiting", due))
        return found

    def _new_events(self) -> list[Change]:
        from executions.models import ExecutionEvent

        events = ExecutionEvent.objects.filter(
            execution_id__gte=self._lowest(), recorded_at__gt=self._from(self._events_from)
        )
        fresh = []
        for event in events.order_by("recorded_at")[:LIMIT]:
            self._events_from = max(self._events_from, event.recorded_at)
            if (event.execution_id, event.id) not in self._seen:
                fresh.append(event)
        found = []
        rows = self._rows({event.execution_id for event in fresh})
        for event in fresh:
            state = state_after(event, rows.get(event.execution_id))
            if state is None and event.recorded_at > self._events_from - OVERLAP / 2:
                continue  # the recorder is not there yet; asked again
            if self._note((event.execution_id, event.id), event.recorded_at) and state:
                job = self._jobs.get(event.execution_id, "?")
                found.append(Change(event.at, job, event.execution_id, state, _detail(event)))
        return found

    def _rows(self, identities: set[UUID]) -> dict[UUID, tuple[str, int]]:
        """State and attempt of runs; their jobs' names are kept."""
        from executions.models import Execution

        if not identities:
            return {}
        rows = Execution.objects.filter(id__in=identities, id__gte=min(identities)).select_related("spec")
        found = {}
        for row in rows:
            self._jobs[row.id] = job_name(row.spec.body)
            found[row.id] = (row.state, row.attempt)
        return found

    def _note(self, key: tuple[UUID, UUID | None], at: datetime) -> bool:
        return self._seen.setdefault(key, at) is at

    def _from(self, latest: datetime) -> datetime:
        return max(self._since, latest - OVERLAP)

    def _lowest(self) -> UUID:
        from executions.ids import lowest_id

        return lowest_id(self._since - REACH)


def state_after(event: ExecutionEvent, row: tuple[str, int] | None) -> str | None:
    """The state that an event has led to; "" where to none, None where that cannot be known yet.

    A failed or lost attempt is an end only where the run has no further one, which only its
    row (state, attempt) can tell; a further one is stated by JOB_RETRYING.
    """
    from executions.states import TERMINAL, EventType, State

    told = {
        EventType.STARTED: State.ACTIVE,
        EventType.COMPLETED: State.COMPLETED_NORMALLY,
        EventType.RETRYING: State.WAITING,
        EventType.RESUMED: State.WAITING,
        EventType.PAUSED: State.PAUSED,
        EventType.CANCELLED: State.CANCELLED,
        EventType.SKIPPED: State.CANCELLED,
    }
    kind = EventType(event.type)
    if kind in told:
        return told[kind]
    if kind not in {EventType.FAILED, EventType.LOST} or row is None:
        return ""
    state, attempt = row
    if attempt > event.attempt:
        return ""
    return state if state in TERMINAL else None


def job_name(body: dict[str, Any]) -> str:
    return str(body.get("job_name", "?"))


def instant_text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}Z"


def _detail(event: ExecutionEvent) -> str:
    parts = [] if event.type == "JOB_RETRYING" else [f"attempt {event.attempt}"]  # its message says which
    code = "" if event.exit_code is None else f"exit code {event.exit_code}"
    if code not in event.message:
        parts.append(code)
    parts += [text for text in (event.reason, event.message) if text]
    return ", ".join(parts)
