"""A preview is what the planner makes, whatever the schedule; the job is one in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.models import Job, Overlap
from jobs.occurrences import followed
from jobs.overlaps import FOLLOW_AT_THE_BEGINNING, following_beginning, following_end
from jobs.previews import LOOKED_AHEAD, preview_schedule
from jobs.schedules import Cron, Schedule, parse_schedule, preview_fires
from jobs.schedules.clockface import ClockFace
from jobs.schedules.evaluation import evaluator_of
from tests.unit.schedules.test_properties import instants, recurring

SHORT = timedelta(milliseconds=1)


def planned_after(job: Job, planned: datetime) -> datetime | None:
    """What the planner makes of a run that began when it was planned and ended at once."""

    def follow(rules: Any) -> Any:
        if job.overlap in FOLLOW_AT_THE_BEGINNING:
            return following_beginning(rules, planned, planned, ended=False)
        return following_end(rules, planned, planned, planned + SHORT)

    rows = followed(job, follow, planned + SHORT)
    assert len(rows) <= 1
    return rows[0].scheduled_for if rows else None


@settings(max_examples=150)
@given(recurring, instants, st.sampled_from(Overlap), st.timedeltas(timedelta(0), timedelta(days=1)))
def test_the_preview_of_a_schedule_is_what_is_planned_run_by_run(
    schedule: Schedule, created: datetime, overlap: str, jitter: timedelta
) -> None:
    stored = schedule.anchored(created).to_json()
    job = Job(
        id=UUID(int=7),
        spec_id=UUID(int=8),
        owner_id=1,
        shard=3,
        schedule=stored,
        overlap=overlap,
        jitter=jitter,
    )
    expected = preview_fires(schedule, created, 5)
    planned = expected[:1]
    while 0 < len(planned) < 5 and (following := planned_after(job, planned[-1])) is not None:
        planned.append(following)
    assert planned == expected


RARE = {"cron": "0 0 29 2 1", "dayMatch": "and", "timezone": "Europe/Berlin"}
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_a_preview_of_a_rare_expression_is_bounded_by_evaluations_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    months: list[tuple[int, int]] = []
    days_of = ClockFace.days_of

    def counted(face: ClockFace, year: int, month: int) -> tuple[int, ...]:
        months.append((year, month))
        return days_of(face, year, month)

    monkeypatch.setattr(ClockFace, "days_of", counted)
    schedule = parse_schedule(RARE)
    assert isinstance(schedule, Cron)
    before = evaluator_of(schedule.rule).evaluations
    found = preview_schedule(schedule, NOW, 500)
    assert 10 <= len(found.fires) <= 20
    assert found.fires[-1] - NOW <= LOOKED_AHEAD
    told = f"Of 500 fires only those of the next 400 years are shown, {len(found.fires)}."
    assert found.warnings[-1] == told
    assert evaluator_of(schedule.rule).evaluations - before == len(found.fires) + 1
    assert max(months) < (2026 + 400 + 100, 1)


def test_one_that_fires_within_that_time_is_shown_whole_and_so_is_what_costs_nothing() -> None:
    yearly = preview_schedule(parse_schedule("0 0 1 1 *"), NOW, 300)
    assert len(yearly.fires) == 300
    assert not any("400 years" in said for said in yearly.warnings)
    seldom = preview_schedule(parse_schedule({"every": "104w"}), NOW, 300)
    assert len(seldom.fires) == 300


def test_one_whose_first_fire_is_far_is_shown_it() -> None:
    first = {"cron": "0 0 1 1 *", "start": "2500-01-01T00:00:00Z"}
    found = preview_schedule(parse_schedule(first), NOW, 5)
    assert [fire.year for fire in found.fires] == [2500]
    assert "400 years" in found.warnings[-1]


def test_an_end_is_told_as_an_end() -> None:
    ended = {"cron": "0 0 1 1 *", "end": "2029-06-01T00:00:00Z"}
    found = preview_schedule(parse_schedule(ended), NOW, 10)
    assert found.warnings[-1] == "It fires 3 more times, and then never again."
