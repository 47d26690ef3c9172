from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.ids import (
    LATEST,
    due_of,
    event_id,
    execution_id,
    lowest_id,
    shard_in,
    shard_of,
    spec_id,
)
from scheduler_project.kernel.clock import EPOCH
from scheduler_project.kernel.errors import InvalidValue

instants = st.datetimes(datetime(1970, 1, 1), datetime(6400, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 -- hypothesis wants it naive
shards = st.integers(0, 4095)
JOB = UUID("00000000-0000-4000-8000-000000000001")
DUE = datetime(2026, 11, 30, 2, 0, 0, 123456, tzinfo=UTC)


@given(st.uuids(), instants, st.text(), shards, st.text())
def test_computed_twice_it_is_equal_and_says_when_and_where(
    job: UUID, due: datetime, trigger: str, shard: int, key: str
) -> None:
    first = execution_id(job, due, trigger, shard, key)
    assert first == execution_id(UUID(str(job)), due.astimezone(UTC), trigger, shard, key)
    assert (first.version, first.variant) == (7, "specified in RFC 4122")
    assert shard_in(first) == shard
    assert timedelta(0) <= due - due_of(first) < timedelta(milliseconds=1)


@given(st.uuids(), st.uuids(), instants, instants, shards, shards)
def test_ids_sort_by_due_time_and_lie_between_the_bounds_of_their_time(
    one: UUID, other: UUID, earlier: datetime, later: datetime, shard: int, second: int
) -> None:
    earlier, later = sorted((earlier, later))
    a, b = execution_id(one, earlier, "schedule", shard), execution_id(other, later, "schedule", second)
    if due_of(a) < due_of(b):
        assert a < b
        assert a < lowest_id(later)
    assert lowest_id(earlier) <= a < lowest_id(earlier + timedelta(milliseconds=1))


def test_the_bound_of_a_time_before_all_is_below_every_id() -> None:
    assert lowest_id(EPOCH - timedelta(days=30)) == UUID(int=0)


@pytest.mark.parametrize(
    "other",
    [
        execution_id(UUID(int=JOB.int + 1), DUE, "schedule", 3),
        execution_id(JOB, DUE + timedelta(microseconds=1), "schedule", 3),
        execution_id(JOB, DUE, "manual", 3),
        execution_id(JOB, DUE, "schedule", 4),
        execution_id(JOB, DUE, "schedule", 3, key="again"),
    ],
)
def test_whatever_differs_makes_another_id(other: UUID) -> None:
    assert other != execution_id(JOB, DUE, "schedule", 3)


def test_ids_stay_what_they_are_from_version_to_version() -> None:
    assert execution_id(JOB, DUE, "schedule", 3) == UUID("01a22a2e-317b-7003-9ddf-8ee7d9ed2b63")
    assert shard_of(JOB, 16) == 11


@pytest.mark.parametrize("due", [EPOCH, LATEST])
def test_the_first_and_the_last_instant_fit(due: datetime) -> None:
    assert due_of(execution_id(JOB, due, "schedule", 4095)) == due


@pytest.mark.parametrize("due", [EPOCH - timedelta(microseconds=1), LATEST + timedelta(microseconds=1)])
def test_beyond_them_is_refused_with_the_instant(due: datetime) -> None:
    with pytest.raises(InvalidValue, match="is not between 1970-01-01 and") as refused:
        execution_id(JOB, due, "schedule", 0)
    assert due.isoformat() in refused.value.message


@given(st.uuids(), st.integers(1, 4096))
def test_a_jobs_shard_is_one_of_those_there_are(job: UUID, count: int) -> None:
    assert 0 <= shard_of(job, count) < count


def test_jobs_spread_over_the_shards() -> None:
    counts = [0] * 16
    for number in range(3200):
        counts[shard_of(UUID(int=number), 16)] += 1
    assert min(counts) > 120
    assert max(counts) < 290


def test_a_statement_made_twice_has_one_id_and_another_statement_another() -> None:
    run = execution_id(JOB, DUE, "schedule", 3)
    ids = {
        event_id(run, 1, "JOB_STARTED", "worker"),
        event_id(run, 1, "JOB_STARTED", "worker"),
        event_id(run, 2, "JOB_STARTED", "worker"),
        event_id(run, 1, "JOB_STARTED", "other"),
        event_id(run, 1, "JOB_FAILED"),
    }
    assert len(ids) == 4


def test_a_spec_is_addressed_by_what_it_says() -> None:
    assert spec_id(b"{}") == spec_id(b"{}") != spec_id(b"[]")
