"""Several of a kind at once, and workers that are full."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.test_runs import body
from tests.system import running_system


@pytest.mark.parametrize("broker", ["rabbitmq", "redis"])
def test_two_beats_and_two_recorders_start_each_run_once(broker: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    command = f'echo "$PUNCTUAL_EXECUTION_ID" >> {ledger}'
    with running_system(tmp_path, broker) as system:
        system.start_all("beat beat worker recorder recorder auditor")
        system.wait_until_ready()
        jobs = system.create_jobs(
            *[body(f"twice {number}", command, {"after": "3s"}) for number in range(200)]
        )
        rows = system.wait_all_terminal(jobs, 200)
        shards = [p.text().count("runs_sent") for p in system.processes if p.name.startswith("beat")]
        assert all(shards), "both beats have dispatched"
        assert Counter(row["state"] for row in rows) == {"Completed Normally": 200}
        assert set(Counter(ledger.read_text().split()).values()) == {1}
        assert len(ledger.read_text().split()) == 200


@pytest.mark.parametrize("broker", ["rabbitmq", "redis"])
def test_nothing_waits_in_the_hands_of_a_full_worker(broker: str, tmp_path: Path) -> None:
    with running_system(tmp_path, broker, PUNCTUAL_WORKER_SLOTS="2") as system:
        full, *_ = system.start_all("worker beat recorder auditor")
        system.wait_until_ready()
        release = tmp_path / "release"
        long_ones = system.create_jobs(
            *[body(f"long {n}", f"until test -e {release}; do sleep 0.1; done", "now") for n in range(2)]
        )
        system.wait_for(
            lambda: [row["state"] for row in system.executions(*long_ones)] == ["Active"] * 2, "both run"
        )
        system.start("worker")
        system.wait_until_ready()
        rows = system.run_in_time(
            lambda name: [body(f"{name} {n}", "true", {"after": f"{2 + n // 2}s"}) for n in range(10)]
        )
        workers = Counter(row["worker"].split("@")[0] for row in rows)
        assert list(workers) == [system.processes[-1].name]
        assert {row["worker"].split("@")[0] for row in system.executions(*long_ones)} == {full.name}
        release.touch()
        system.wait_all_terminal(long_ones, 2)
