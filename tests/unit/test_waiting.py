"""Waiting for a process of a system under test (tests/system.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_project.kernel.clock import monotonic
from scheduler_project.places.processes import EndedEarly, Process
from tests.system import PATIENCE_S


def start(folder: Path, script: str) -> Process:
    return Process("worker0", ["sh", "-c", script], {}, folder / "log")


def test_a_process_is_up_once_it_says_so(tmp_path: Path) -> None:
    process = start(tmp_path, "echo worker0 ready.; exec sleep 60")
    deadline = monotonic() + PATIENCE_S
    while not process.up:
        assert monotonic() < deadline
    process.kill()
    assert process.up, "it was"


def test_one_that_ended_before_is_no_wait_and_its_last_lines_are_told(tmp_path: Path) -> None:
    process = start(tmp_path, "echo the queue is broken; exit 3")
    deadline = monotonic() + PATIENCE_S
    with pytest.raises(EndedEarly, match=r"worker0 ended with 3 before it was up\n(?s:.*)queue is broken"):
        while not process.up:
            assert monotonic() < deadline
