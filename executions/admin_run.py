"""What the admin's page of a run shows of it, and shows anew while it changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from executions.admin_cells import (
    NOTHING,
    job_link,
    length_cell,
    run_links,
    state_cell,
    state_class,
    time_cell,
)
from executions.api.presentation import due_at, row_of
from executions.diagnosis import Code
from executions.events import REPORTED
from executions.explanations import explain, explain_code
from executions.listing import events_of, retries_of
from executions.models import Execution, ExecutionEvent
from executions.states import TERMINAL, EventType, State
from executions.timeline import Span, came_too_late, in_order, seconds_in_state, spans
from executions.why import why

PICTURE_WIDTH = 1000.0  # units of the drawing, whatever its size on the screen
LEAST_WIDTH = 4.0
_UNRECORDED = {Code.BEGUN_UNRECORDED, Code.ENDED_UNRECORDED}
_HEADINGS = {
    State.WAITING: "Why is it not running?",
    State.PAUSED: "Why is it not running?",
    State.ACTIVE: "What it is doing",
}


def live_context(execution: Execution, now: datetime) -> dict[str, Any]:
    """For the template live.html: all that changes while a run goes on."""
    events = events_of(execution)
    states = spans(row_of(execution), events)
    state = State(execution.state)
    causes = why(execution, now)
    unrecorded = any(cause.code in _UNRECORDED for cause in causes)
    return {
        "execution": execution,
        "ended": state in TERMINAL,
        "state": state_cell(state),
        "state_class": state_class(state),
        "headline": _headline(execution),
        "why_heading": "What is known" if unrecorded else _HEADINGS.get(state, "How it ended"),
        "causes": causes,
        "movable": state is State.WAITING and not unrecorded,
        "facts": _facts(execution, events, now),
        "picture": draw(states, now),
        "states": [_state_row(span, now) for span in states],
        "totals": [
            (state_cell(name), length_cell(timedelta(seconds=seconds)))
            for name, seconds in seconds_in_state(states, now).items()
        ],
        "events": [
            (time_cell(event.at, exact=True), event, event_message(execution, event))
            for event in in_order(events)
        ],
    }


def event_message(execution: Execution, event: ExecutionEvent) -> str:
    """What it says; of a reported end, and of what its worker said afterwards, what that means."""
    if event.message:
        return event.message
    if event.reason == REPORTED:
        return str(explain(REPORTED))
    after_report = execution.reason == REPORTED and came_too_late(row_of(execution), event)
    return "The end had been reported before: its worker stopped what was left." if after_report else ""


def _headline(execution: Execution) -> str:
    code = "" if execution.exit_code is None else f"exit code {execution.exit_code}"
    reason = execution.reason.replace("_", " ")
    return ", ".join(part for part in (f"attempt {execution.attempt}", reason, code) if part)


def _facts(execution: Execution, events: list[ExecutionEvent], now: datetime) -> list[tuple[str, str]]:
    """Names and values, in the order in which they come about."""
    starts = [(event.attempt, event.at) for event in events if event.type == EventType.STARTED]
    begun = dict(sorted(starts, reverse=True))  # the first of an attempt that was taken up later
    if execution.started_at is not None and not begun:
        begun = {execution.attempt: execution.started_at}
    latest = max(begun, default=1)
    of_attempt = f" (attempt {latest})" if latest > 1 else ""
    late = begun[1] - execution.wanted_at if 1 in begun else None  # later attempts have waited on purpose
    found = [
        ("Job", job_link(execution.job_id, execution.spec.body["job_name"])),
        ("Retry of", run_links([execution.retry_of] if execution.retry_of else [])),
        ("Retried by", run_links(retries_of(execution))),
        ("Planned for", time_cell(execution.scheduled_for)),
        ("To be sent", time_cell(due_at(execution))),
        ("Sent to the workers", time_cell(execution.queued_at)),
        (f"Started{of_attempt}", time_cell(execution.started_at)),
        ("Started after it was due", length_cell(late)),
        ("Finished", time_cell(execution.finished_at)),
        (f"Duration{of_attempt}", length_cell(run_length(execution, now))),
        ("Worker", execution.worker or NOTHING),
        ("Exit code", explain_code(execution.exit_code) or _plain(execution.exit_code)),
        ("Message", execution.message or NOTHING),
        ("Fires in this row", _plain(execution.missed or None)),
    ]
    return [(name, value) for name, value in found if value != NOTHING]


def _plain(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def run_length(execution: Execution, now: datetime) -> timedelta | None:
    """From start to end of the latest attempt; so far, where it still runs."""
    if execution.started_at is None or execution.state in {State.WAITING, State.PAUSED}:
        return None
    return (execution.finished_at or now) - execution.started_at


def _state_row(span: Span, now: datetime) -> dict[str, Any]:
    ended = span.state in TERMINAL
    return {
        "state": state_cell(span.state),
        "attempt": span.attempt,
        "since": time_cell(span.since, exact=True),
        "until": NOTHING if ended else time_cell(span.until, exact=True),
        "length": NOTHING if ended else length_cell(span.length(now)),
    }


def draw(states: list[Span], now: datetime) -> list[dict[str, Any]]:
    """The bars of the picture: as wide as the states were long, but never too thin to be seen."""
    lengths = [0.0 if span.state in TERMINAL else span.length(now).total_seconds() for span in states]
    if not any(lengths):
        lengths = [1.0] * len(states)
    scale = (PICTURE_WIDTH - LEAST_WIDTH * len(states)) / sum(lengths)
    bars, left = [], 0.0
    for span, length in zip(states, lengths, strict=True):
        width = LEAST_WIDTH + length * scale
        title = f"{span.state}, attempt {span.attempt}: {length:.3f} s"
        bars.append(
            {"x": f"{left:.1f}", "width": f"{width:.1f}", "kind": state_class(span.state), "title": title}
        )
        left += width
    return bars
