"""Which state an event has led to."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from executions.models import ExecutionEvent
from scheduler_project.standalone.changes import Change, state_after
from scheduler_project.standalone.reporter import change_line


def event(kind: str, attempt: int = 1) -> ExecutionEvent:
    return ExecutionEvent(execution_id=uuid4(), id=uuid4(), type=kind, attempt=attempt)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("JOB_STARTED", "Active"),
        ("JOB_COMPLETED", "Completed Normally"),
        ("JOB_RETRYING", "Waiting"),
        ("JOB_PAUSED", "Paused"),
        ("JOB_RESUMED", "Waiting"),
        ("JOB_CANCELLED", "Cancelled"),
        ("JOB_SKIPPED", "Cancelled"),
        ("JOB_QUEUED", ""),
    ],
)
def test_most_events_say_by_themselves_what_they_lead_to(kind, state):
    assert state_after(event(kind), None) == state


@pytest.mark.parametrize("kind", ["JOB_FAILED", "JOB_LOST"])
def test_a_failed_attempt_is_an_end_only_where_there_is_no_further_one(kind):
    assert state_after(event(kind), ("Completed Abnormally", 1)) == "Completed Abnormally"
    assert state_after(event(kind), ("Waiting", 2)) == ""
    assert state_after(event(kind), ("Completed Normally", 2)) == ""


def test_a_failed_attempt_whose_row_the_recorder_has_not_seen_yet_is_not_known():
    assert state_after(event("JOB_FAILED", 2), ("Active", 2)) is None


def test_a_change_is_one_line():
    at = datetime(2026, 11, 30, 4, 0, 1, 250_000, tzinfo=UTC)
    line = change_line(Change(at, "daily-sales-etl", uuid4(), "Active", "attempt 1"))
    assert line == "04:00:01.250Z  daily-sales-etl       Active                attempt 1"


def test_a_change_is_one_line_that_no_terminal_obeys():
    at = datetime(2026, 11, 30, 4, 0, 1, 250_000, tzinfo=UTC)
    line = change_line(Change(at, "\x1b[2J\x9b", uuid4(), "Active", "a\r\nb\u202ec ü\x7f"))
    assert line.isprintable()
    assert "\\x1b[2J\\x9b" in line
    assert line.endswith("a\\r\\nb\\u202ec ü\\x7f")
