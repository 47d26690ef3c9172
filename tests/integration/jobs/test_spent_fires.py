"""Whatever is changed, a job goes on: no fire runs twice, none is without a row, and none is the last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from executions.ids import lowest_id
from executions.models import Execution
from executions.store import Store
from executions.transitions import insert
from jobs.misfires import block_of
from jobs.models import Missed
from jobs.occurrences import skipped_row
from jobs.overlaps import Skipped
from jobs.queries import JOBS
from jobs.spent import last_planned
from jobs.stored_schedules import planning_schedule
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.life import Life
from tests.integration.making import new_run, stored_spec

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
OVERLAPS = ("forbid", "allow", "queue", "replace")
each_overlap = pytest.mark.parametrize("overlap", OVERLAPS)


@pytest.fixture
def start(store: Store) -> datetime:
    """A full hour, near now."""
    return utcnow().replace(minute=0, second=0, microsecond=0)


def fires(first: datetime, last: datetime, step: timedelta) -> list[datetime]:
    return [first + n * step for n in range((last - first) // step + 1)]


def next_of(life: Life) -> Execution:
    assert life.next is not None
    return life.next


# --- a new schedule that names what the old one had planned ----------------


@each_overlap
def test_a_new_schedule_runs_the_fire_that_was_next_of_the_old_one(start: datetime, overlap: str) -> None:
    life = Life({"cron": "5 * * * * *"}, start + 31 * SECOND, overlap=overlap)
    life.edit(schedule={"cron": "45,55,5,15,25 * * * * *"})
    life.live(MINUTE)
    assert life.ran == fires(start + 45 * SECOND, start + 85 * SECOND, 10 * SECOND)
    assert life.goes_on()
    assert life.skipped() == []


@each_overlap
@pytest.mark.parametrize("what", ["cancelled", "moved", "moved to now"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_new_schedule_goes_on_past_what_somebody_cancelled_or_moved(
    start: datetime, overlap: str, what: str, paused: bool
) -> None:
    life = Life({"cron": "0 * * * *"}, start + 1 * SECOND, overlap=overlap)
    first = next_of(life)
    if what == "cancelled":
        life.cancel(first)
    else:
        life.move(first, HOUR * 30 if what == "moved" else timedelta(0))
    life.live(SECOND * 5)
    if paused:
        life.pause()
    life.edit(schedule={"cron": "*/30 * * * *"})
    if paused:
        life.resume()
    life.live(2 * HOUR)
    expected = [start + n * HOUR / 2 for n in (1, 2, 3, 4)]
    if what != "moved to now":
        expected.remove(first.scheduled_for)
    assert life.ran == expected
    assert life.goes_on()


@each_overlap
def test_edits_in_quick_succession_lose_nothing(start: datetime, overlap: str) -> None:
    life = Life({"cron": "0 * * * * *"}, start + SECOND, overlap=overlap)
    for schedule in ("*/20 * * * * *", "0,30 * * * * *", "*/20 * * * * *", "0 * * * * *", "*/15 * * * * *"):
        life.edit(schedule={"cron": schedule})
        life.now += timedelta(milliseconds=10)
    life.live(2 * MINUTE)
    assert life.ran == fires(start + 15 * SECOND, start + 120 * SECOND, 15 * SECOND)
    assert life.goes_on()


@each_overlap
def test_what_an_edited_job_catches_up_with_has_no_gap(start: datetime, overlap: str) -> None:
    life = Life({"cron": "15 * * * * *"}, start + SECOND, overlap=overlap)
    life.pause()
    life.now = start + 20 * SECOND
    life.edit(schedule={"cron": "*/15 * * * * *"})
    life.now = start + 130 * SECOND
    life.resume(Missed.RUN_ALL)
    life.length = SECOND / 10
    life.live(2 * MINUTE)
    wanted = {start + 15 * SECOND, *fires(start + 30 * SECOND, start + 120 * SECOND, 15 * SECOND)}
    assert wanted <= set(life.ran)
    assert life.goes_on()


@each_overlap
def test_a_cancelled_run_does_not_come_back_with_an_end_date(start: datetime, overlap: str) -> None:
    life = Life({"cron": "0 * * * *"}, start + SECOND, overlap=overlap)
    first = next_of(life)
    life.cancel(first)
    life.edit(schedule={"cron": "0 * * * *", "end": "2099-01-01T00:00:00Z"})
    assert next_of(life).scheduled_for == first.scheduled_for + HOUR
    assert life.goes_on()


def test_a_single_run_that_was_cancelled_is_made_for_who_asks_for_it_again(start: datetime) -> None:
    life = Life({"at": "2031-01-01T00:00:00Z"}, start)
    life.cancel(next_of(life))
    life.edit(schedule={"at": "2032-01-01T00:00:00Z"})
    life.edit(schedule={"at": "2031-01-01T00:00:00Z"})
    assert next_of(life).scheduled_for == datetime(2031, 1, 1, tzinfo=UTC)


# --- jitter ----------------------------------------------------------------


@each_overlap
@pytest.mark.parametrize("what", ["cancel", "move"])
def test_new_jitter_leaves_the_next_run_waiting(start: datetime, overlap: str, what: str) -> None:
    life = Life({"cron": "0 * * * *"}, start + SECOND, overlap=overlap)
    if what == "cancel":
        life.cancel(next_of(life))
    else:
        life.move(next_of(life), 5 * HOUR)
    waits = next_of(life)
    life.edit(jitter="10s")
    again = next_of(life)
    assert (again.id, again.state) == (waits.id, "Waiting")
    assert again.check_at is not None
    assert waits.scheduled_for < again.check_at < waits.scheduled_for + 10 * SECOND
    assert life.goes_on()


def spread(start: datetime, overlap: str = "forbid") -> tuple[Life, Execution]:
    """A job between the planned and the due time of its next run, which is some seconds later."""
    for number in range(100):
        life = Life(
            {"cron": "0 * * * *"}, start + SECOND, overlap=overlap, jitter="50s", name=f"job {number}"
        )
        run = next_of(life)
        assert run.check_at is not None
        if run.check_at - run.scheduled_for > 10 * SECOND:
            life.now = run.scheduled_for + 5 * SECOND
            return life, run
    raise AssertionError


@each_overlap
@pytest.mark.parametrize("choice", list(Missed))
def test_a_run_whose_due_time_is_to_come_was_not_missed(
    start: datetime, overlap: str, choice: Missed
) -> None:
    life, run = spread(start, overlap)
    life.pause()
    life.now += SECOND
    life.resume(choice)
    again = next_of(life)
    assert (again.id, again.state, again.check_at) == (run.id, "Waiting", run.check_at)
    assert len(life.rows) == 1


@pytest.mark.parametrize("overlap", ["forbid", "queue"])
@pytest.mark.parametrize("choice", list(Missed))
def test_a_fire_whose_due_time_is_to_come_is_not_missed_where_nothing_waited(
    start: datetime, overlap: str, choice: Missed
) -> None:
    life, run = spread(start, overlap)
    life.now = run.scheduled_for - MINUTE
    life.pause()
    life.edit(schedule={"cron": "0 * * * *", "end": "2099-01-01T00:00:00Z"})
    Execution.objects.filter(id=run.id).delete()
    life.now = run.scheduled_for + 5 * SECOND
    life.resume(choice)
    (again,) = life.rows
    assert (again.trigger, again.scheduled_for, again.check_at) == (
        "schedule",
        run.scheduled_for,
        run.check_at,
    )


@each_overlap
def test_jitter_taken_away_lets_a_run_start_that_was_spread(start: datetime, overlap: str) -> None:
    life, run = spread(start, overlap)
    life.edit(jitter="0s")
    assert next_of(life).check_at == life.now
    life.live(SECOND)
    assert life.ran == [run.scheduled_for]
    assert life.goes_on()


# --- a queue that catches up -----------------------------------------------


@pytest.mark.parametrize("change", [{"description": "other"}, {"jitter": "100ms"}])
def test_an_edit_of_a_queue_that_catches_up_leaves_it_one_chain(
    start: datetime, change: dict[str, Any]
) -> None:
    life = Life({"cron": "*/2 * * * * *"}, start, SECOND / 2, overlap="queue")
    life.pause()
    life.now += 6 * SECOND
    life.resume(Missed.RUN_ALL)
    life.live(SECOND)
    assert life.next is None
    life.edit(**change)
    assert life.next is None
    life.live(20 * SECOND)
    assert life.ran[:10] == fires(start + 2 * SECOND, start + 20 * SECOND, 2 * SECOND)
    assert life.skipped() == []
    assert life.goes_on()


@pytest.mark.parametrize("choice", list(Missed))
def test_a_queue_that_is_paused_while_it_is_to_catch_up_goes_on(start: datetime, choice: Missed) -> None:
    life = Life({"cron": "*/3 * * * * *"}, start, SECOND / 2, overlap="queue")
    life.pause()
    life.now += 8 * SECOND
    life.resume(Missed.RUN_LATEST)
    life.pause()
    life.resume(choice)
    life.live(30 * SECOND)
    first = 9 if choice is Missed.SKIP else 6
    assert life.ran[:5] == fires(start + first * SECOND, start + (first + 12) * SECOND, 3 * SECOND)
    begun = [row.first_started_at for row in life.rows if row.first_started_at]
    assert begun == sorted(begun)
    assert life.goes_on()
    assert sum(missed for _, missed in life.skipped()) == first // 3 - 1


# --- an edit during a pause ------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "old"),
    [
        ("forbid", "55 * * * * *"),
        ("forbid", "0 0 1 1 *"),
        ("allow", "55 * * * * *"),
        ("queue", "0 0 1 1 *"),
        ("replace", "55 * * * * *"),
    ],
)
@pytest.mark.parametrize(("choice", "run"), [(Missed.SKIP, 0), (Missed.RUN_LATEST, 1), (Missed.RUN_ALL, 5)])
def test_the_fires_of_a_schedule_that_a_paused_job_was_given_are_for_who_resumes_it(
    start: datetime, overlap: str, choice: Missed, run: int, old: str
) -> None:
    life = Life({"cron": old}, start + 8 * SECOND, SECOND / 10, overlap=overlap)
    life.pause()
    life.edit(schedule={"cron": "*/10 * * * * *"})
    life.now = start + 57 * SECOND
    life.resume(choice)
    life.live(MINUTE)
    held_back = fires(start + 10 * SECOND, start + 50 * SECOND, 10 * SECOND)
    assert [fire for fire in life.ran if fire <= held_back[-1]] == held_back[5 - run :]
    assert life.skipped() == ([] if run == 5 else [("skipped_paused", 5 - run)])
    assert life.ran[run:] == fires(start + MINUTE, life.now, 10 * SECOND)[: len(life.ran) - run]
    assert life.goes_on()


# --- a recorder that is behind ---------------------------------------------


THE_SAME_FIRES = {"cron": "*/2 * * * * *", "end": "2099-01-01T00:00:00Z"}


@each_overlap
@pytest.mark.parametrize("change", [{"jitter": "100ms", "command": "echo"}, {"schedule": THE_SAME_FIRES}])
def test_an_edit_while_nobody_has_recorded_that_a_run_began_changes_no_fire(
    start: datetime, overlap: str, change: dict[str, Any]
) -> None:
    lives = [
        Life({"cron": "*/2 * * * * *"}, start, overlap=overlap, misfire="none", name=name)
        for name in ("edited", "untouched")
    ]
    for life in lives:
        life.live(SECOND)
        life.fall_behind()
        life.live(2 * SECOND)
        if life is lives[0]:
            life.edit(**change)
        life.live(6 * SECOND)
        life.hear()
        life.live(5.5 * SECOND)
        assert life.goes_on()
    edited, untouched = lives
    assert edited.ran == untouched.ran
    assert edited.skipped() == untouched.skipped()


@pytest.mark.parametrize("overlap", ["allow", "replace"])
@pytest.mark.parametrize("choice", [Missed.SKIP, Missed.RUN_ALL])
@pytest.mark.parametrize("heard", ["in the pause", "after it"])
def test_a_run_that_begins_unrecorded_before_a_pause_is_followed_by_one_chain(
    start: datetime, overlap: str, choice: Missed, heard: str
) -> None:
    life = Life({"cron": "*/5 * * * * *"}, start, overlap=overlap, misfire="all")
    life.live(SECOND)
    life.fall_behind()
    life.live(5 * SECOND)
    life.pause()
    if heard == "in the pause":
        life.hear()
        assert next_of(life).state == "Paused"
    life.live(11 * SECOND)
    life.resume(choice)
    life.hear()
    life.live(30 * SECOND)
    planned = [row.scheduled_for for row in life.rows]
    assert len(planned) == len(set(planned))
    if overlap == "allow":
        assert {reason for reason, _ in life.skipped()} <= {"skipped_paused"}
    assert len(life.ran) + sum(missed for _, missed in life.skipped()) == 9
    assert life.goes_on()


# --- fires that are one row ------------------------------------------------


@each_overlap
@pytest.mark.parametrize("late", [0, 5], ids=["before the block", "within it"])
@pytest.mark.parametrize("schedule", [{"cron": "*/2 * * * * *"}, {"every": "2s"}], ids=["cron", "every"])
def test_no_fire_of_a_skipped_block_runs(start: datetime, overlap: str, late: int, schedule: Any) -> None:
    life = Life(schedule, start, SECOND / 2, overlap=overlap, misfire="none")
    first = next_of(life).scheduled_for
    life.fall_behind()
    life.now = first + late * SECOND
    life.live(9 * SECOND - late * SECOND)
    fires_of = planning_schedule(life.job)
    block = block_of(fires_of, first, first + 6 * SECOND)
    assert block is not None
    insert([skipped_row(life.job, Skipped(block, "skipped_paused"), life.now)])
    assert fires_of.next_fire(last_planned(life.job, fires_of)) == first + 8 * SECOND
    life.hear()
    life.live(5.5 * SECOND)
    ran = fires(first + 8 * SECOND, first + 14 * SECOND, 2 * SECOND)
    if overlap == "forbid":  # what began last ended after 8
        ran = [fire for fire in ran if fire in life.ran]
    assert life.ran == [first, *ran]
    assert ran[1:]
    assert life.goes_on()


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("analysed", [False, True])
def test_what_is_spent_is_found_by_index(store: Store, analysed: bool) -> None:
    spec, at = stored_spec(), datetime(2030, 3, 1, 12, tzinfo=UTC)
    insert([new_run(spec, due=at) for _ in range(4000)])
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute("ANALYZE executions_execution")
        columns: list[Any] = [
            [uuid4()] * 500,
            [at] * 500,
            [lowest_id(at)] * 500,
            [lowest_id(at + SECOND)] * 500,
        ]
        cursor.execute("EXPLAIN " + JOBS["taken_times"], columns)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on executions_execution_default" not in plan, plan
