"""Nothing records for longer than every time-out: what has run is not run again, and is recorded at last."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.test_runs import body
from tests.system import running_system

TIMES = {"PUNCTUAL_RUN_LEASE": "2s", "PUNCTUAL_ENQUEUE_TIMEOUT": "10s"}


@pytest.mark.parametrize("broker", ["rabbitmq", "redis"])
def test_runs_that_ended_while_no_recorder_ran_are_not_run_again(broker: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    with running_system(tmp_path, broker, **TIMES) as system:
        system.start_all("beat worker auditor")
        system.wait_until_ready()
        bodies = [body(f"once {number}", f"echo {number} >> {ledger}", "now") for number in range(10)]
        jobs = system.create_jobs(*bodies)
        system.wait_for(lambda: len(ledger.read_text().split()) >= 10, "all have run")
        time.sleep(25)  # twice the enqueue time-out and a sweep: as long as claims were once kept
        system.start("recorder")
        runs = system.wait_all_terminal(jobs, 10)
    assert {run["state"] for run in runs} == {"Completed Normally"}
    assert Counter(ledger.read_text().split()) == {str(number): 1 for number in range(10)}
