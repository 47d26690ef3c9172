"""Which tests stay together when several processes share them (tests/distribution.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribution import EACH_ITS_OWN, ONE_SYSTEM, ORDER, unit_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/unit/test_x.py::TestA::test_b[redis-1]", "tests/unit/test_x.py"),
        ("tests/e2e/test_runs.py::test_a[redis]", "tests/e2e/test_runs.py[redis]"),
        ("tests/faults/test_kill.py::test_a[rabbitmq-beat]", "tests/faults/test_kill.py[rabbitmq]"),
        ("tests/e2e/test_docker_runs.py::test_a", "tests/e2e/test_docker_runs.py[]"),
        (
            "tests/contract/test_runtime_contract.py::TestA::test_b[kubernetes]",
            "tests/contract/test_runtime_contract.py[kubernetes]",
        ),
        ("tests/faults/test_servers.py::test_a[postgres]", "tests/faults/test_servers.py"),
        ("tests/faults/test_many.py::test_a[redis]", "tests/faults/test_many.py::test_a[redis]"),
    ],
)
def test_a_file_or_the_tests_of_one_system_stay_together(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


def test_what_it_names_is_there() -> None:
    assert [place for place in (*ORDER, *EACH_ITS_OWN, *ONE_SYSTEM) if not (ROOT / place).exists()] == []
