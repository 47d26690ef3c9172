"""Queues of runs and the broker's queues behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.pools import rank
from executions.priorities import Priority, broker_queue, by_priority, read_queue, run_queue
from scheduler_project.kernel.errors import InvalidValue

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True).filter(
    lambda name: name not in {"maintenance", "celery"}
)


@given(NAMES, st.sampled_from(Priority))
def test_each_class_is_a_queue_of_the_broker_that_leads_back(name: str, priority: Priority) -> None:
    assert read_queue(name) == name
    assert run_queue(broker_queue(name, priority)) == name


@given(st.lists(NAMES, unique=True, max_size=4))
def test_no_two_classes_share_a_queue_and_the_highest_comes_first(names: list[str]) -> None:
    classes = by_priority(names)
    flat = [name for group in classes for name in group]
    assert len(flat) == len(set(flat)) == 3 * len(names)
    assert classes[1] == names


@pytest.mark.parametrize("name", ["", "a b", "A", "a.high", "maintenance", "-a", "ä", "x" * 64, None, 3])
def test_what_is_no_queue(name: object) -> None:
    with pytest.raises(InvalidValue):
        read_queue(name)


@given(st.integers(0, 1 << 41), st.integers(0, 1 << 41))
def test_a_higher_class_goes_first_whatever_the_time(early: int, late: int) -> None:
    assert rank(Priority.HIGH, early) < rank(Priority.NORMAL, late) < 1 << 53
    assert float(rank(Priority.LOW, late)) == rank(Priority.LOW, late), "exact as Redis keeps it"
