"""How executions and their events read in JSON: camelCase names, times ISO 8601 in UTC with Z."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from executions.diagnosis import Cause
from executions.explanations import explain
from executions.holding import is_held
from executions.models import Execution, ExecutionEvent
from executions.services import Cancelling
from executions.states import TERMINAL, State
from executions.tallies import Counts
from executions.timeline import Row, Span, in_order, seconds_in_state, spans


def time_text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def execution_json(execution: Execution, owners: Mapping[int, str]) -> dict[str, Any]:
    """``owners``: the names of the teams; the snapshot's stands in for a team that is gone."""
    body = execution.spec.body
    return {
        "id": str(execution.id),
        "jobId": str(execution.job_id),
        "jobName": body["job_name"],
        "owner": owners.get(execution.owner_id, body["owner"]),
        "trigger": execution.trigger,
        "status": execution.state,
        "reason": execution.reason,
        "message": execution.message,
        "explanation": explanation_of(execution),
        "attempt": execution.attempt,
        "missed": execution.missed,
        "scheduledFor": time_text(execution.scheduled_for),
        "retryOf": None if execution.retry_of is None else str(execution.retry_of),
        "movedTo": time_text(execution.moved_to),
        "dueAt": time_text(due_at(execution)),
        "queuedAt": time_text(execution.queued_at),
        "startedAt": time_text(execution.started_at),
        "finishedAt": time_text(execution.finished_at),
        "cancelRequestedAt": time_text(execution.cancel_requested_at),
        "exitCode": execution.exit_code,
        "worker": execution.worker,
        "parameters": body["parameters"],
    }


def explanation_of(execution: Execution) -> str | None:
    """How it ended, or how its last attempt did, in sentences; None where there is nothing to be said yet."""
    found = explain(execution.reason, execution.exit_code)
    return None if found is None else str(found)


def why_json(execution: Execution, causes: Sequence[Cause]) -> dict[str, Any]:
    """Why it is not running, the first cause first."""
    return {
        "id": str(execution.id),
        "status": execution.state,
        "summary": causes[0].sentence,
        "causes": [
            {
                "code": str(cause.code),
                "sentence": cause.sentence,
                "advice": cause.advice,
                "at": time_text(cause.at),
                "runs": [
                    {"id": str(run.id), "jobName": run.job_name, "status": str(run.state)}
                    for run in cause.runs
                ],
                "facts": dict(cause.facts),
            }
            for cause in causes
        ],
    }


def due_at(execution: Execution) -> datetime | None:
    """When a run that waits for its time will be sent to a worker; None where it waits for something else."""
    check_at = execution.check_at if execution.state == State.WAITING else None
    if check_at is None or execution.queued_at is not None or is_held(check_at):
        return None
    return check_at


def history_json(execution: Execution, events: Sequence[ExecutionEvent], now: datetime) -> dict[str, Any]:
    """The events in order, the states that they led through, and the seconds in each."""
    states = spans(row_of(execution), events)
    return {
        "events": [_event_json(event) for event in in_order(events)],
        "states": [_span_json(span, now) for span in states],
        "secondsInState": seconds_in_state(states, now),
    }


def row_of(execution: Execution) -> Row:
    return Row(
        State(execution.state),
        execution.attempt,
        execution.created_at,
        execution.started_at,
        execution.finished_at,
    )


def _event_json(event: ExecutionEvent) -> dict[str, Any]:
    return {
        "id": str(event.id),
        "type": event.type,
        "attempt": event.attempt,
        "at": time_text(event.at),
        "recordedAt": time_text(event.recorded_at),
        "worker": event.worker,
        "reason": event.reason,
        "message": event.message,
        "exitCode": event.exit_code,
    }


def _span_json(span: Span, now: datetime) -> dict[str, Any]:
    """An end has no length."""
    ended = span.state in TERMINAL
    return {
        "status": str(span.state),
        "attempt": span.attempt,
        "from": time_text(span.since),
        "to": time_text(span.until),
        "seconds": None if ended else span.length(now).total_seconds(),
    }


def counts_json(counts: Counts) -> dict[str, Any]:
    """What happened in a span of time, as it was counted with the history."""
    return {
        "due": counts.due,
        "started": counts.started,
        "completedNormally": counts.completed,
        "completedAbnormally": counts.abnormal,
        "cancelled": counts.cancelled,
        "skipped": counts.skipped,
        "latenessP50Seconds": counts.late(0.5),
        "latenessP99Seconds": counts.late(0.99),
    }


def cancelled_json(execution_id: UUID, done: Cancelling) -> dict[str, str]:
    """What became of the wish to cancel a run."""
    at_once = done is Cancelling.CANCELLED
    return {"id": str(execution_id), "status": str(State.CANCELLED if at_once else State.ACTIVE)}
