"""Which executions follow an ended run; the job is one in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.planning import EndedRun, NewExecution
from executions.states import State, Trigger
from jobs.models import Job
from jobs.occurrences import _follow, new_execution, occurrence, schedule_of

T = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
M = timedelta(minutes=1)
EVERY_5M: dict[str, Any] = {"every": "5m", "anchor": "2026-11-30T02:00:00Z"}


def job(schedule: dict[str, Any]) -> Job:
    return Job(id=UUID(int=7), spec_id=UUID(int=8), owner_id=1, shard=3, schedule=schedule)


def follow(
    schedule: dict[str, Any],
    planned: datetime,
    started: datetime | None,
    finished: datetime,
    now: datetime | None = None,
) -> list[NewExecution]:
    found = job(schedule)
    ended = EndedRun(
        id=UUID(int=9),
        job_id=found.id,
        trigger=Trigger.SCHEDULE,
        scheduled_for=planned,
        state=State.COMPLETED_NORMALLY,
        started_at=started,
        finished_at=finished,
    )
    return _follow(found, ended, now or finished)


def brief(new: list[NewExecution]) -> list[tuple[datetime, str, int]]:
    return [(item.scheduled_for, item.reason, item.missed) for item in new]


def test_the_next_follows_from_the_planned_time_and_waits() -> None:
    (following,) = follow(EVERY_5M, T, T + S, T + M)
    assert (following.scheduled_for, following.check_at, following.state) == (
        T + 5 * M,
        T + 5 * M,
        State.WAITING,
    )
    assert following == occurrence(job(EVERY_5M), T + 5 * M)


def test_how_late_it_is_recorded_does_not_count() -> None:
    assert brief(follow(EVERY_5M, T, T, T + M)) == brief(follow(EVERY_5M, T, T, T + M, now=T + 60 * M))


def test_fires_while_it_ran_are_one_overlap() -> None:
    skipped, following = follow(EVERY_5M, T, T + S, T + 17 * M)
    assert brief([skipped, following]) == [(T + 5 * M, "skipped_overlap", 3), (T + 20 * M, "", 0)]
    assert (skipped.state, skipped.check_at, skipped.finished_at) == (State.CANCELLED, None, T + 17 * M)
    assert skipped.message == "3 planned from 2026-11-30 02:05:00 to 2026-11-30 02:17:00 UTC did not run"


def test_fires_before_it_started_are_one_misfire() -> None:
    assert brief(follow(EVERY_5M, T, T + 11 * M, T + 12 * M)) == [
        (T + 5 * M, "skipped_misfire", 2),
        (T + 15 * M, "", 0),
    ]


def test_both_blocks_and_a_fire_on_each_border_counts_once() -> None:
    assert brief(follow(EVERY_5M, T, T + 10 * M, T + 20 * M)) == [
        (T + 5 * M, "skipped_misfire", 2),
        (T + 15 * M, "skipped_overlap", 2),
        (T + 25 * M, "", 0),
    ]


def test_a_run_that_never_started_missed_what_passed_until_its_end() -> None:
    assert brief(follow(EVERY_5M, T, None, T + 6 * M)) == [
        (T + 5 * M, "skipped_misfire", 1),
        (T + 10 * M, "", 0),
    ]


@pytest.mark.parametrize("started", [None, T - M])
def test_a_run_cancelled_before_it_was_due_is_followed_by_the_next(started: datetime | None) -> None:
    assert brief(follow(EVERY_5M, T + 5 * M, started, T - M)) == [(T + 10 * M, "", 0)]


def test_a_schedule_without_a_further_fire_has_no_next() -> None:
    assert follow({"at": "2026-11-30T02:00:00Z"}, T, T, T + M) == []
    ending = {**EVERY_5M, "end": "2026-11-30T02:12:00Z"}
    assert brief(follow(ending, T, T, T + 30 * M)) == [(T + 5 * M, "skipped_overlap", 2)]


def test_a_schedule_that_cannot_be_read_has_no_next() -> None:
    assert follow({"cron": "0 2 * * *", "timezone": "Mars/Olympus"}, T, T, T + M) == []


@given(st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 40_000))
def test_every_fire_is_run_or_counted_once(planned_s: int, late_s: int, long_s: int) -> None:
    planned = T + (planned_s // 300) * 300 * S
    started = planned + late_s * S
    finished = started + long_s * S
    *blocks, following = follow(EVERY_5M, planned, started, finished)
    assert following.scheduled_for > max(finished, planned)
    fires = (following.scheduled_for - planned) // (5 * M) - 1
    assert sum(block.missed for block in blocks) == fires
    assert len({item.id for item in [*blocks, following]}) == len(blocks) + 1
    assert all(planned < block.scheduled_for < following.scheduled_for for block in blocks)


def test_ids_follow_from_job_time_and_trigger() -> None:
    found = job(EVERY_5M)
    assert new_execution(found, T, Trigger.SCHEDULE).id == occurrence(found, T).id
    assert new_execution(found, T, Trigger.MANUAL).id != occurrence(found, T).id
    assert schedule_of(found) is schedule_of(job(dict(EVERY_5M)))
