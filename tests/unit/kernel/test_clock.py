from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from scheduler_project.kernel.clock import (
    EPOCH,
    ManualClock,
    from_micros,
    from_millis,
    monotonic,
    to_micros,
    to_millis,
    utcnow,
)

instants = st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 -- hypothesis wants it naive


@given(instants)
def test_microseconds_are_exact(instant: datetime) -> None:
    assert from_micros(to_micros(instant)) == instant


@given(instants)
def test_milliseconds_are_rounded_down(instant: datetime) -> None:
    assert timedelta(0) <= instant - from_millis(to_millis(instant)) < timedelta(milliseconds=1)


@given(st.integers(-(10**13), 10**14))
def test_milliseconds_round_trip(millis: int) -> None:
    assert to_millis(from_millis(millis)) == millis


def test_the_zone_of_an_instant_does_not_count() -> None:
    there = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert to_micros(there) == 0 == to_micros(EPOCH)


def test_now_is_aware_and_in_utc_and_the_monotonic_clock_never_goes_back() -> None:
    assert utcnow().tzinfo is UTC
    assert monotonic() <= monotonic()


def test_a_manual_clock_moves_only_when_told_to() -> None:
    clock = ManualClock(EPOCH)
    clock.advance(timedelta(hours=1))
    assert clock.now() == clock.now() == EPOCH + timedelta(hours=1)
