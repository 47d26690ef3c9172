"""Whatever is changed: no fire runs twice, each has a row that says what became of it, the job goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from executions.models import Execution
from executions.store import Store
from jobs.models import Job, Missed
from jobs.schedules import fires_between, parse_schedule
from scheduler_project.kernel.clock import MICROSECOND, utcnow
from tests.integration.jobs.life import Life

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EXAMPLES = 20  # of which each is a job that lives for some minutes; a few hundred while you change what plans
OVERLAPS = ["forbid", "allow", "queue", "replace"]
CRONS = [
    "0 * * * * *",
    "30 * * * * *",
    "*/20 * * * * *",
    "0,30 * * * * *",
    "10,40,50 * * * * *",
    "0 */5 * * * *",
]
NUMBERS = count()

edits = st.fixed_dictionaries(
    {},
    optional={
        "schedule": st.sampled_from([*[{"cron": cron} for cron in CRONS], {"every": "20s"}]),
        "jitter": st.sampled_from(["0s", "5s", "15s"]),
        "overlap": st.sampled_from(OVERLAPS),
    },
)
acts = st.one_of(
    st.tuples(st.just("edit"), edits),
    st.tuples(st.just("live"), st.integers(1, 130).map(lambda seconds: seconds * SECOND / 2)),
    st.tuples(st.just("outage"), st.integers(20, 240).map(lambda seconds: seconds * SECOND)),
    st.tuples(st.just("fall behind"), st.none()),
    st.tuples(st.just("hear"), st.none()),
    st.tuples(st.just("pause"), st.none()),
    st.tuples(st.just("resume"), st.sampled_from(list(Missed))),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("move"), st.sampled_from([timedelta(0), 25 * SECOND, HOUR])),
)


@pytest.fixture
def start(store: Store) -> datetime:
    return utcnow().replace(minute=0, second=0, microsecond=0)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    overlap=st.sampled_from(OVERLAPS),
    cron=st.sampled_from(CRONS),
    length=st.sampled_from([SECOND, 7 * SECOND, 45 * SECOND]),
    acts=st.lists(acts, min_size=3, max_size=14),
)
def test_no_fire_is_lost_or_runs_twice(
    start: datetime, overlap: str, cron: str, length: timedelta, acts: list[tuple[str, Any]]
) -> None:
    life = Life(
        {"cron": cron},
        start + 3 * SECOND,
        length,
        overlap=overlap,
        name=f"job {next(NUMBERS)}",
        misfire="all",
    )
    try:
        for name, what in acts:
            act(life, name, what)
            check_next(life)
        life.hear()
        life.resume(Missed.RUN_ALL)
        life.length = SECOND / 10
        life.live(4 * MINUTE)
        for line in told(life):
            note(line)
        check_next(life)
        check_fires(life)
        check_runs(life, acts)
    finally:
        forget(life.job)


def act(life: Life, name: str, what: Any) -> None:
    life.now += timedelta(milliseconds=7)
    if name == "edit":
        life.edit(**what)
    elif name in ("cancel", "move"):
        run = life.next
        if run is not None and name == "cancel":
            life.cancel(run)
        elif run is not None and run.state == "Waiting":
            life.move(run, what)
    elif what is None:
        {"fall behind": life.fall_behind, "hear": life.hear, "pause": life.pause}[name]()
    elif name == "resume":
        life.resume(what)
    elif name == "outage":
        life.outage(what)
    else:
        life.live(what)


def check_next(life: Life) -> None:
    job = Job.objects.get(id=life.job.id)
    assert job.revision == job.settled_revision
    assert job.paused_at is not None or life.goes_on()


def check_fires(life: Life) -> None:
    """Each fire of the schedule in force has a row, or lies in the block of one."""
    ends = [since for since, _ in life.schedules[1:]] + [life.now]
    covered = [spans(row) for row in life.rows if row.missed or not taken_away(row)]
    for (since, schedule), end in zip(life.schedules, ends, strict=True):
        last = end if end == life.now else end - MICROSECOND
        for fire in fires_between(parse_schedule(schedule), since, last, 10_000):
            assert any(first <= fire <= until for first, until in covered), f"nothing is known of {fire}"


def taken_away(row: Execution) -> bool:
    return row.reason == "rescheduled" and row.state == "Cancelled"


def spans(row: Execution) -> tuple[datetime, datetime]:
    if row.missed:
        _, until = row.message.split(" UTC did not run")[0].split(" to ")
        return row.scheduled_for, datetime.fromisoformat(until).replace(tzinfo=UTC) + SECOND  # it is cut off
    return row.scheduled_for, row.scheduled_for


def check_runs(life: Life, acts: list[tuple[str, Any]]) -> None:
    """None runs twice or early, and none is skipped for a reason that there was not."""
    rows = [row for row in life.rows if not taken_away(row)]
    twice = [planned for planned, number in Counter(row.scheduled_for for row in rows).items() if number > 1]
    assert not twice, twice
    for row in rows:
        if row.first_started_at is not None and row.moved_to is None:
            assert row.first_started_at >= row.scheduled_for, row.scheduled_for
    reasons = {row.reason for row in rows if row.missed}
    assert "skipped_misfire" not in reasons
    if not {what for name, what in acts if name == "resume"} - {Missed.RUN_ALL}:
        assert "skipped_paused" not in reasons


def told(life: Life) -> Iterator[str]:
    yield f"schedules: {[(f'{since:%M:%S.%f}', schedule) for since, schedule in life.schedules]}"
    for row in life.rows:
        times = [f"{at:%M:%S}" if at else "-" for at in (row.first_started_at, row.finished_at, row.check_at)]
        yield f"{row.scheduled_for:%M:%S} {row.trigger} {row.state} {row.reason} {row.missed} {times}"


def forget(job: Job) -> None:
    Execution.objects.filter(job_id=job.id).delete()
    Job.objects.filter(id=job.id).update(paused_at=utcnow())
