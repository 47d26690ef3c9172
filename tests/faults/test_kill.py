"""kill -9 of any one process while 200 short runs are due: after a restart all 200 are terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_runs import body
from tests.system import System, running_system

RUNS = 200


@pytest.fixture(scope="module", params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    options = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENQUEUE_TIMEOUT": "15s"}
    with running_system(tmp_path_factory.mktemp("system"), request.param, **options) as found:
        found.start_all()
        found.wait_until_ready()
        yield found


@pytest.mark.parametrize("victim", ["beat", "worker", "recorder", "auditor"])
def test_all_runs_end_after_a_kill_and_a_restart(system: System, victim: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    command = f'echo "$PUNCTUAL_EXECUTION_ID" >> {ledger}; sleep 0.05'
    jobs = system.create_jobs(
        *[body(f"{victim} {number}", command, {"after": "3s"}, retries=0) for number in range(RUNS)]
    )
    process = next(p for p in system.processes if p.name.startswith(victim) and p.alive)
    system.wait_for(lambda: ledger.exists() and len(ledger.read_text().split()) > 20, "runs are under way")
    process.kill()
    system.start(victim)
    rows = system.wait_all_terminal(jobs, RUNS)
    assert Counter(row["state"] for row in rows) == {"Completed Normally": RUNS}
    started = Counter(ledger.read_text().split())
    assert set(started) == {str(row["id"]) for row in rows}
    wait_for_history(system, [str(row["id"]) for row in rows])


def wait_for_history(system: System, ids: list[str]) -> None:
    def complete() -> bool:
        (found,) = system.query(
            "SELECT count(DISTINCT execution_id) FROM executions_executionevent"
            " WHERE execution_id = ANY(%s::uuid[]) AND type = 'JOB_COMPLETED'",
            ids,
        )
        return bool(found["count"] == len(ids))

    system.wait_for(complete, "the history is complete", timeout_s=60)
