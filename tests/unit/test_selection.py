"""Which tests a usual run leaves out (tests/selection.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.selection import LONG, is_long, leaves_out

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("nodeid", "long"),
    [
        ("tests/faults/test_kill.py::test_a[redis-beat]", True),
        ("tests/faults/test_kill.py::test_a[rabbitmq-beat]", False),
        ("tests/faults/test_cuts.py::test_a[REDIS_URL]", False),
        ("tests/faults/test_cuts.py::test_a[BROKER_URL]", True),
        ("tests/e2e/test_runs.py::test_a[redis]", False),
    ],
)
def test_of_two_that_differ_by_their_broker_one_stays(nodeid: str, long: bool) -> None:
    assert is_long(nodeid) is long


def test_who_names_a_file_or_wants_all_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCTUAL_TEST_ALL", raising=False)
    assert leaves_out(["tests"])
    assert not leaves_out(["tests/faults/test_kill.py"])
    assert not leaves_out(["tests/faults/test_kill.py::test_a[redis-beat]"])
    monkeypatch.setenv("PUNCTUAL_TEST_ALL", "1")
    assert not leaves_out(["tests"])


def test_every_pattern_leaves_out_some_and_of_every_file_but_one_something_stays() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/faults"]
    usual, everything = (
        subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True, env={**_env(), **more}, timeout=300
        ).stdout.splitlines()
        for more in ({}, {"PUNCTUAL_TEST_ALL": "1"})
    )
    left_out = {line for line in everything if "::" in line} - set(usual)
    assert all(any(pattern.match(nodeid) for nodeid in left_out) for pattern in LONG)
    files, stay = (
        {line.partition("::")[0] for line in lines if "::" in line} for lines in (everything, usual)
    )
    assert files - stay == {"tests/faults/test_outage.py"}


def _env() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name != "PUNCTUAL_TEST_ALL"
    }
