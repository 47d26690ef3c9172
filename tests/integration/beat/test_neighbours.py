from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from beat import neighbours as looking
from beat.neighbours import LATE, Neighbours
from beat.ownership import Ownership
from executions.entries import Entry
from executions.ids import execution_id
from executions.store import Store
from executions.window import Window
from scheduler_project.kernel.clock import from_millis, monotonic
from tests.integration.making import SPEC, entry_for

LEASE = timedelta(minutes=1)


@pytest.fixture
def neighbours(window: Window, ownership: Ownership) -> Neighbours:
    """Of a beat that owns nothing, beside one that owns all."""
    return Neighbours(window, Ownership(window.store, "other", 16, LEASE), 16)


def late_entry(window: Window, shard: int, late: timedelta) -> Entry:
    due = from_millis(window.store.now_ms()) - late
    entry = entry_for(execution_id(uuid4(), due, "schedule", shard), due)
    window.add([entry], {SPEC.id: SPEC.canonical})
    return entry


def test_a_shard_whose_head_is_late_is_reached_and_its_owner_keeps_it(
    neighbours: Neighbours, ownership: Ownership, window: Window
) -> None:
    late_entry(window, 3, 2 * LATE)
    late_entry(window, 4, LATE / 2)
    late_entry(window, 5, -LATE)
    neighbours.run_once()
    assert neighbours.reached() == [3]
    assert len(ownership.owned()) == 16


def test_the_look_passes_by_minutes_that_are_empty(neighbours: Neighbours, window: Window) -> None:
    early = late_entry(window, 3, timedelta(minutes=3))
    late_entry(window, 3, 2 * LATE)
    window.remove([early])
    neighbours.run_once()
    assert neighbours.reached() == [3]


def test_when_its_head_is_on_time_again_it_is_left_alone(neighbours: Neighbours, window: Window) -> None:
    late_entry(window, 3, 2 * LATE)
    neighbours.run_once()
    window.pop(neighbours.reached(), LEASE, 100)
    neighbours.run_once()
    assert neighbours.reached() == []


def test_what_was_seen_is_believed_for_a_moment_only(
    neighbours: Neighbours, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_entry(window, 3, 2 * LATE)
    neighbours.run_once()
    later = monotonic() + 3 * looking.PERIOD_S
    monkeypatch.setattr(looking, "monotonic", lambda: later)
    assert neighbours.reached() == []


def test_two_beats_that_take_from_one_shard_get_each_run_once(window: Window, store: Store) -> None:
    entries = [late_entry(window, 3, 2 * LATE) for _ in range(100)]
    taken: list[UUID] = []
    for turn in range(20):
        beat = window if turn % 2 else Window(store)
        taken += [run.execution_id for run in beat.pop([3], LEASE, 7)[0].runs]
    assert sorted(taken) == sorted(entry.execution_id for entry in entries)
