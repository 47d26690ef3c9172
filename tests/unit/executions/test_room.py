"""What a worker can hold at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from containers.capacity import Capacity
from executions.worker.room import Needs, Room, Takes, Verdict, needs_of
from tests.unit.executions.test_runspecs import SPEC

GIB = 1 << 30
HALF = Needs(0.5, GIB // 2)
SMALL, LARGE = Needs(1.0, GIB), Needs(3.0, 2 * GIB)


def takes_of(found: Room) -> Takes:
    return found.takes


def is_open(found: Room) -> bool:
    return found.takes is Takes.ANYTHING


def sent_back(found: Room) -> None:
    found.put_back()
    found.leave(Needs())


def room(slots: int = 8, cpus: float | None = 4.0, memory_bytes: int | None = 8 * GIB) -> Room:
    return Room(slots, Capacity(cpus, memory_bytes))


def test_no_more_is_taken_than_slots_cpus_and_memory_hold() -> None:
    assert [room(slots=2).take(SMALL)] == [Verdict.TAKEN]
    for found, third in (
        (room(slots=2), Verdict.NOT_NOW),
        (room(cpus=2.0), Verdict.AWAITED),
        (room(memory_bytes=2 * GIB), Verdict.AWAITED),
    ):
        assert [found.take(SMALL) for _ in range(3)] == [Verdict.TAKEN, Verdict.TAKEN, third]
        assert not is_open(found)
        if third is Verdict.AWAITED:
            sent_back(found)
        found.leave(SMALL)
        assert is_open(found)


def test_what_asks_for_nothing_takes_a_slot_only() -> None:
    found = room(slots=3, cpus=1.0)
    assert [found.take(Needs()) for _ in range(3)] == [Verdict.TAKEN] * 3
    assert not is_open(found)


def test_a_large_run_that_was_sent_back_is_not_starved_by_small_ones() -> None:
    found = room()
    assert [found.take(SMALL) for _ in range(2)] == [Verdict.TAKEN] * 2
    assert found.take(LARGE) is Verdict.AWAITED
    sent_back(found)
    assert not is_open(found), "although there is room for a small one"
    assert found.take(SMALL) is Verdict.NOT_NOW, "one that the broker had on its way"
    assert found.awaits
    found.leave(SMALL)
    assert is_open(found)
    assert found.take(LARGE) is Verdict.TAKEN
    assert not found.awaits


def test_what_has_begun_is_taken_up_while_a_large_run_is_awaited_and_ends_no_waiting() -> None:
    found = room(slots=4)
    assert [found.take(SMALL) for _ in range(2)] == [Verdict.TAKEN] * 2
    found.take(LARGE)
    sent_back(found)
    assert found.take(SMALL, begun=True) is Verdict.TAKEN
    assert takes_of(found) is Takes.BEGUN
    assert found.take(SMALL, begun=True) is Verdict.TAKEN
    assert takes_of(found) is Takes.NOTHING


def test_a_large_run_that_is_gone_is_awaited_until_the_next_look() -> None:
    found = room()
    assert [found.take(SMALL) for _ in range(2)] == [Verdict.TAKEN] * 2
    found.take(LARGE)
    found.look_again()
    assert found.awaits, "it is in hand"
    sent_back(found)
    found.look_again()
    assert is_open(found)
    assert found.take(SMALL) is Verdict.TAKEN


def test_what_is_in_hand_moves_in_before_all_others() -> None:
    found = room()
    assert [found.take(SMALL) for _ in range(2)] == [Verdict.TAKEN] * 2
    found.take(LARGE)
    assert not found.fits(LARGE)
    found.leave(SMALL)
    assert found.fits(LARGE)
    assert not is_open(found), "its room is its own"
    found.move_in(LARGE)
    assert is_open(found)
    assert (found.busy, found.awaits, found.fits(HALF)) == (2, False, False)


def test_what_can_never_be_held_has_a_slot_while_it_is_passed_on() -> None:
    found = room(slots=1)
    assert found.take(Needs(4.5)) is Verdict.NEVER
    assert not is_open(found)
    found.leave(Needs())
    assert is_open(found)
    assert not found.awaits


def test_what_runs_already_is_taken_up_whatever_the_room_and_counted() -> None:
    found = room(cpus=1.0)
    assert found.take(LARGE, begun=True) is Verdict.TAKEN
    assert found.take(SMALL) is Verdict.AWAITED
    sent_back(found)
    found.leave(LARGE)
    assert found.take(SMALL) is Verdict.TAKEN


def test_without_limits_only_slots_count() -> None:
    found = room(slots=2, cpus=None, memory_bytes=None)
    assert found.take(Needs(1000.0, 1 << 45)) is Verdict.TAKEN


@pytest.mark.parametrize(
    ("resources", "needs"),
    [
        ({}, Needs()),
        ({"cpu": {"limit": 2}, "memory": {"limit": "1Gi"}}, Needs(2.0, GIB)),
        ({"cpu": {"request": 0.5, "limit": 2}, "memory": {"request": "512Mi", "limit": "1Gi"}}, HALF),
        ({"cpu": {"limit": "nonsense"}}, Needs()),
    ],
)  # fmt: skip
def test_requests_count_and_limits_where_there_are_none(resources: dict[str, Any], needs: Needs) -> None:
    assert needs_of(replace(SPEC, container={"resources": resources})) == needs


def test_in_words() -> None:
    assert str(Needs(1.5, GIB)) == "1.5 CPUs and 1024 MiB"
    assert str(Needs()) == "nothing"
    assert str(Capacity(2.0, GIB)) == "2 CPUs and 1024 MiB"
    assert str(Capacity()) == "any number of CPUs and any memory"
