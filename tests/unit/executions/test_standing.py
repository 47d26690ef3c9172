"""The sentence on a run's page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from executions.standing import Standing, describe_standing
from executions.states import State

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
RUN = Standing(
    state=State.WAITING,
    attempt=1,
    reason="",
    message="",
    worker="",
    due=NOW + timedelta(minutes=5, microseconds=7),
    queued_at=None,
    started_at=None,
    asked_to_stop=False,
)
CASES = {
    "due in 5m, at 2026-12-01 12:05:00 UTC": RUN,
    "Attempt 1 failed; attempt 2 follows": replace(RUN, attempt=2),
    "at the next opportunity": replace(RUN, due=NOW),
    "Waits for leave to start": replace(RUN, due=None),
    "none has begun it yet": replace(RUN, due=None, queued_at=NOW),
    "Runs on w1.": replace(RUN, state=State.ACTIVE, worker="w1", started_at=NOW),
    "it still runs on w1": replace(RUN, state=State.ACTIVE, worker="w1", asked_to_stop=True),
    "until the job is resumed": replace(RUN, state=State.PAUSED),
    "Ended as it should": replace(RUN, state=State.COMPLETED_NORMALLY, started_at=NOW),
    "Failed at the last of 3 attempts: exit code 3. Its output": replace(
        RUN, state=State.COMPLETED_ABNORMALLY, attempt=3, message="exit code 3", started_at=NOW
    ),
    "Failed before it began: no such image.": replace(
        RUN, state=State.COMPLETED_ABNORMALLY, message="no such image."
    ),
    "Did not run, because a run before it had not ended: 8 planned.": replace(
        RUN, state=State.CANCELLED, reason="skipped_overlap", message="8 planned"
    ),
    "Did not run: the job is deleted.": replace(RUN, state=State.CANCELLED, message="the job is deleted"),
    "Was stopped: cancelled by root.": replace(
        RUN, state=State.CANCELLED, message="cancelled by root", started_at=NOW
    ),
}


@pytest.mark.parametrize("said", CASES)
def test_a_run_says_how_it_stands(said: str) -> None:
    assert said in describe_standing(CASES[said], NOW)
