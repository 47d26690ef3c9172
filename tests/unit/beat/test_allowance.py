from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.catchups import LONGEST_SAVED_S, Allowance
from jobs.catchups import Candidate, admit

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
ID = UUID(int=1)


@given(st.lists(st.floats(0.05, 3.0), min_size=1, max_size=200), st.floats(1, 500))
def test_no_more_start_than_the_rate_allows_however_the_ticks_come(pauses: list[float], rate: float) -> None:
    allowance, at_s, started = Allowance(rate, 0.0), 0.0, 0
    for pause in pauses:
        at_s += pause
        room = allowance.room(at_s)
        allowance.spend(room)
        started += room
    assert started <= rate * at_s + 1e-6


def test_what_was_not_used_is_not_saved_up() -> None:
    allowance = Allowance(100, 0.0)
    assert allowance.room(60.0) == 100 * LONGEST_SAVED_S
    assert Allowance(1, 0.0).room(60.0) == 1  # but the slowest rate starts something


def candidate(
    trigger: str = "catchup", overlap: str = "forbid", going: bool = True, busy: bool = False
) -> Candidate:
    return Candidate(ID, ID, 1, 0, ID, trigger, NOW, overlap, going, busy, NOW)


@pytest.mark.parametrize(
    ("given_", "free", "parks"),
    [
        (candidate(), True, True),
        (candidate(overlap="replace"), True, True),
        (candidate(overlap="queue"), True, False),
        (candidate(overlap="allow"), True, False),
        (candidate(busy=True), False, True),
        (candidate(overlap="queue", busy=True), False, False),
        (candidate(overlap="allow", busy=True), True, False),
        (candidate("backfill", busy=True), True, False),
        (candidate("backfill", going=False), False, False),
        (candidate(going=False), False, True),
    ],
)
def test_which_may_start_and_what_they_hold_up(given_: Candidate, free: bool, parks: bool) -> None:
    assert (given_.free, given_.parks) == (free, parks)
    admission = admit([given_], 5)
    assert (len(admission.admitted), len(admission.turned_away)) == (int(free), int(not free))


def test_those_that_are_free_beyond_the_room_keep_their_place() -> None:
    admission = admit([candidate(), candidate(busy=True), candidate(), candidate()], 2)
    assert (len(admission.admitted), len(admission.turned_away)) == (2, 1)
