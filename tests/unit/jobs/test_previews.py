"""A preview is what the planner makes, whatever the schedule; the job is one in memory."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.models import Job, Overlap
from jobs.occurrences import followed
from jobs.overlaps import FOLLOW_AT_THE_BEGINNING, following_beginning, following_end
from jobs.schedules import Schedule, preview_fires
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


@settings(max_examples=150, deadline=None)
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
