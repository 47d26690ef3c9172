"""What failed is printed at once (tests/telling.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = """
import pytest, time

@pytest.mark.flaky(reruns=1)
def test_a():
    assert "a value" == "another"

def test_b():
    time.sleep(60)
"""


def test_what_failed_is_told_before_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "tests.telling", "-p", "no:django"]
    run = subprocess.Popen(
        [*command, "-n", "1", f"--rootdir={tmp_path}", str(tmp_path / "test_it.py")],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stdout is not None
    told = ""
    try:
        for line in run.stdout:
            told += line
            if "failed: " in line:
                break
        for line in run.stdout:
            told += line
            if "AssertionError" in line:
                break
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(30)
        run.stdout.close()
    assert "rerun: test_it.py::test_a (call" in told
    assert "failed: test_it.py::test_a (call" in told
    assert told.count("assert 'a value' == 'another'") == 2
