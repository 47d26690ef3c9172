"""Which executions follow a run; the job is one in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.holding import due_when_released, held, is_held
from executions.planning import NewExecution
from executions.states import State, Trigger
from jobs.models import Job
from jobs.occurrences import continue_chain, followed, new_execution, occurrence
from jobs.overlaps import following_beginning, following_catch_up, following_end
from jobs.stored_schedules import schedule_of

T = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
M = timedelta(minutes=1)
EVERY_5M: dict[str, Any] = {"every": "5m", "anchor": "2026-11-30T02:00:00Z"}
Brief = list[tuple[str, datetime, str, int]]


def job(schedule: dict[str, Any] = EVERY_5M, **fields: Any) -> Job:
    return Job(id=UUID(int=7), spec_id=UUID(int=8), owner_id=1, shard=3, schedule=schedule, **fields)


def ended(
    found: Job,
    planned: datetime,
    started: datetime | None,
    finished: datetime,
    now: datetime | None = None,
) -> list[NewExecution]:
    return followed(found, lambda rules: following_end(rules, planned, started, finished), now or finished)


def begun(found: Job, planned: datetime, at: datetime, over: bool = False) -> list[NewExecution]:
    return followed(found, lambda rules: following_beginning(rules, planned, at, ended=over), at)


def brief(new: list[NewExecution]) -> Brief:
    return [(_what(item), item.scheduled_for, item.reason, item.missed) for item in new]


def _what(item: NewExecution) -> str:
    if item.check_at is None:
        return "skipped"
    if item.trigger is Trigger.CATCH_UP:
        return "catchup"
    return "parked" if is_held(item.check_at) else "waits"


# forbid


def test_the_next_follows_from_the_planned_time_and_waits() -> None:
    (following,) = ended(job(), T, T + S, T + M)
    assert (following.scheduled_for, following.check_at, following.state) == (
        T + 5 * M,
        T + 5 * M,
        State.WAITING,
    )
    assert following == occurrence(job(), T + 5 * M)


def test_how_late_it_is_recorded_does_not_count() -> None:
    assert brief(ended(job(), T, T, T + M)) == brief(ended(job(), T, T, T + M, now=T + 60 * M))


def test_fires_while_it_ran_are_one_overlap() -> None:
    new = ended(job(), T, T + S, T + 17 * M)
    assert brief(new) == [
        ("skipped", T + 5 * M, "skipped_overlap", 3),
        ("waits", T + 20 * M, "", 0),
    ]
    assert (new[0].state, new[0].finished_at) == (State.CANCELLED, T + 17 * M)
    assert new[0].message == "3 planned from 2026-11-30 02:05:00 to 2026-11-30 02:15:00 UTC did not run"


def test_of_the_fires_missed_before_it_started_the_latest_runs() -> None:
    new = ended(job(), T, T + 17 * M, T + 18 * M)
    assert brief(new) == [
        ("skipped", T + 5 * M, "skipped_misfire", 2),
        ("catchup", T + 15 * M, "", 0),
        ("waits", T + 20 * M, "", 0),
    ]
    assert new[1].catch_up_until == T + 15 * M


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"misfire": "none"}, [("skipped", T + 5 * M, "skipped_misfire", 3)]),
        ({"misfire": "all"}, [("catchup", T + 5 * M, "", 0)]),
        (
            {"misfire": "all", "misfire_max_count": 2},
            [("skipped", T + 5 * M, "skipped_misfire", 1), ("catchup", T + 10 * M, "", 0)],
        ),
    ],
    ids=["none", "all", "at most two"],
)
def test_what_was_missed_before_a_late_start_is_for_the_policy(
    fields: dict[str, Any], expected: Brief
) -> None:
    new = brief(ended(job(**fields), T, T + 17 * M, T + 18 * M))
    assert new == [*expected, ("waits", T + 20 * M, "", 0)]


def test_a_fire_that_passed_just_before_a_late_start_fell_into_the_run() -> None:
    assert brief(ended(job(misfire="none"), T, T + 10 * M + 30 * S, T + 16 * M)) == [
        ("skipped", T + 5 * M, "skipped_misfire", 1),
        ("skipped", T + 10 * M, "skipped_overlap", 2),
        ("waits", T + 20 * M, "", 0),
    ]


def test_a_run_that_never_started_missed_what_passed_until_its_end() -> None:
    assert brief(ended(job(misfire="none"), T, None, T + 7 * M)) == [
        ("skipped", T + 5 * M, "skipped_misfire", 1),
        ("waits", T + 10 * M, "", 0),
    ]


@pytest.mark.parametrize("started", [None, T - M])
@pytest.mark.parametrize("overlap", ["forbid", "queue"])
def test_a_run_cancelled_before_it_was_due_is_followed_by_the_next(
    started: datetime | None, overlap: str
) -> None:
    new = ended(job(overlap=overlap), T + 5 * M, started, T - M)
    assert brief(new) == [("waits", T + 10 * M, "", 0)]


@pytest.mark.parametrize("overlap", ["forbid", "allow", "queue", "replace"])
def test_a_schedule_without_a_further_fire_has_no_next(overlap: str) -> None:
    once = job({"at": "2026-11-30T02:00:00Z"}, overlap=overlap)
    assert ended(once, T, T, T + M) == []
    assert begun(once, T, T) == []
    ending = job({**EVERY_5M, "end": "2026-11-30T02:12:00Z"}, overlap=overlap)
    follow = begun(ending, T + 10 * M, T + 10 * M) + ended(ending, T + 10 * M, T + 10 * M, T + 30 * M)
    assert "waits" not in [what for what, *_ in brief(follow)]


def test_a_schedule_that_cannot_be_read_has_no_next() -> None:
    assert ended(job({"cron": "0 2 * * *", "timezone": "Mars/Olympus"}), T, T, T + M) == []


@given(
    st.integers(0, 40_000),
    st.integers(0, 40_000),
    st.integers(0, 40_000),
    st.sampled_from(["all", "latest", "none"]),
)
def test_every_fire_is_run_or_counted_once(planned_s: int, late_s: int, long_s: int, misfire: str) -> None:
    planned = T + (planned_s // 300) * 300 * S
    started = planned + late_s * S
    finished = started + long_s * S
    *others, following = ended(job(misfire=misfire), planned, started, finished)
    assert following.scheduled_for > max(finished, planned)
    fires = (following.scheduled_for - planned) // (5 * M) - 1
    caught_up = sum(
        (item.catch_up_until - item.scheduled_for) // (5 * M) + 1 for item in others if item.catch_up_until
    )
    assert sum(item.missed for item in others) + caught_up == fires
    assert len({item.id for item in [*others, following]}) == len(others) + 1
    assert all(planned < item.scheduled_for < following.scheduled_for for item in others)


# queue


def test_in_a_queue_each_fire_runs_one_after_the_other() -> None:
    (following,) = ended(job(overlap="queue"), T, T, T + 17 * M)
    assert (following.scheduled_for, following.check_at) == (T + 5 * M, T + 17 * M)
    assert brief(ended(job(overlap="queue"), T + 5 * M, T + 17 * M, T + 18 * M)) == [
        ("waits", T + 10 * M, "", 0)
    ]


def test_a_queue_is_bounded_by_the_fires_that_wait() -> None:
    seconds = job({"every": "1s", "anchor": "2026-11-30T02:00:00Z"}, overlap="queue")
    assert brief(ended(seconds, T, T, T + 1500 * S)) == [
        ("skipped", T + S, "skipped_overlap", 500),
        ("waits", T + 501 * S, "", 0),
    ]


# allow and replace


def test_runs_that_may_overlap_are_followed_when_they_begin() -> None:
    assert brief(begun(job(overlap="allow"), T, T + S)) == [("waits", T + 5 * M, "", 0)]


def test_beside_a_run_that_begins_late_runs_what_is_just_late_too() -> None:
    tens = job({"every": "10s", "anchor": "2026-11-30T02:00:00Z"}, overlap="allow")
    assert brief(begun(tens, T, T + 25 * S)) == [("waits", T + n * S, "", 0) for n in (10, 20, 30)]


def test_what_is_to_be_replaced_is_followed_by_one_that_is_parked() -> None:
    found = job(overlap="replace")
    (parked,) = begun(found, T, T + S)
    assert parked.check_at == held(T + 5 * M)
    assert due_when_released(parked.check_at) == T + 5 * M
    assert brief(begun(found, T, T + S, over=True)) == [("waits", T + 5 * M, "", 0)]
    assert brief(
        begun(job({"every": "10s", "anchor": "2026-11-30T02:00:00Z"}, overlap="replace"), T, T + 25 * S)
    ) == [
        ("skipped", T + 10 * S, "skipped_overlap", 2),
        ("parked", T + 30 * S, "", 0),
    ]


# catching up


def test_missed_fires_run_in_order_until_the_last() -> None:
    def after(planned: datetime, overlap: str = "forbid") -> Brief:
        found = job(overlap=overlap)
        return brief(
            followed(found, lambda r: following_catch_up(r, planned, T + 10 * M, T + 60 * M), T + 60 * M)
        )

    assert after(T) == [("catchup", T + 5 * M, "", 0)]
    assert after(T + 5 * M) == [("catchup", T + 10 * M, "", 0)]
    assert after(T + 10 * M) == []
    assert after(T + 10 * M, "queue") == [("waits", T + 15 * M, "", 0)]


def test_a_chain_that_broke_goes_on_from_its_last_planned_time() -> None:
    assert brief(continue_chain(job(), T, T + 21 * M)) == [
        ("skipped", T + 5 * M, "skipped_misfire", 2),
        ("catchup", T + 15 * M, "", 0),
        ("waits", T + 20 * M, "", 0),
    ]
    assert brief(continue_chain(job(), T + 5 * M, T)) == [("waits", T + 10 * M, "", 0)]


# identity and jitter


def test_ids_follow_from_job_time_and_trigger() -> None:
    found = job()
    assert new_execution(found, T, Trigger.SCHEDULE).id == occurrence(found, T).id
    assert new_execution(found, T, Trigger.CATCH_UP).id == occurrence(found, T).id  # the same fire, later
    assert new_execution(found, T, Trigger.MANUAL).id != occurrence(found, T).id
    assert schedule_of(found) is schedule_of(job(dict(EVERY_5M)))


@given(st.uuids(), st.integers(1, 900), st.integers(0, 50))
def test_jitter_keeps_the_planned_time_and_the_order(identity: UUID, width_s: int, number: int) -> None:
    found = job(jitter=width_s * S)
    found.id = identity
    planned = T + number * 5 * M
    first, second = occurrence(found, planned), occurrence(found, planned + 5 * M)
    assert first.scheduled_for == planned
    assert first.check_at is not None
    assert second.check_at is not None
    assert planned <= first.check_at < min(planned + width_s * S, planned + 5 * M)
    assert first.check_at < second.check_at
    assert first.check_at - planned == second.check_at - second.scheduled_for  # stable
