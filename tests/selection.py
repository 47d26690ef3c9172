"""A pytest plugin (``-p tests.selection``): which tests a usual run leaves out, so that it takes minutes.

They are those of whole systems that take long and differ from one that stays by their broker or by what is
done to it; and those that hold a figure (so many runs within so many seconds), which a machine that is busy
with other things does not reach. ``make test-all`` runs them too (PUNCTUAL_TEST_ALL=1), and so does who names
their file.
"""

from __future__ import annotations

import os
import re

import pytest

LONG = [
    re.compile(pattern)
    for pattern in (
        r"tests/faults/[^:]*::.*\[redis\b",  # over kombu's Redis transport; tests/e2e/test_runs.py stays
        r"tests/faults/test_cuts\.py::.*\[(DATABASE|BROKER)_URL\]",
        r"tests/faults/test_hosts\.py::.*\[(recorder--1|worker-1)\]",
        r"tests/faults/test_outage\.py::",
        r"tests/faults/test_servers\.py::test_a_redis_that_comes_back_empty_has_its_window_back",
        r"tests/faults/test_stalls\.py::test_a_beat_that_dies_makes_no_run_later_than_three_seconds",
    )
]


def is_long(nodeid: str) -> bool:
    return any(pattern.match(nodeid) for pattern in LONG)


def leaves_out(arguments: list[str]) -> bool:
    """Whether a run with these arguments does: not where all are wanted, or files or tests are named."""
    return not os.environ.get("PUNCTUAL_TEST_ALL") and not any(".py" in argument for argument in arguments)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not leaves_out(config.args):
        return
    if left_out := [item for item in items if is_long(item.nodeid)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_long(item.nodeid)]
