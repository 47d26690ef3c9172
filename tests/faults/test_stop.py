"""A worker that is told to stop while the broker is away: it ends soon, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_runs import body
from tests.integration.proxy import TcpProxy
from tests.system import System, running_system

TIMES = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENQUEUE_TIMEOUT": "10s"}


@pytest.fixture(params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    with running_system(tmp_path, request.param, **TIMES) as found:
        yield found


@pytest.fixture
def proxy(system: System) -> Iterator[TcpProxy]:
    """Between the worker and its broker."""
    address = urlsplit(system.env["BROKER_URL"])
    made = TcpProxy(address.hostname or "", address.port or 0)
    yield made
    made.close()


def test_an_outcome_that_cannot_be_published_is_said_by_the_sweep(
    system: System, proxy: TcpProxy, tmp_path: Path
) -> None:
    port = urlsplit(system.env["BROKER_URL"]).port
    system.start_all("beat recorder auditor")
    worker = system.start(
        "worker", BROKER_URL=system.env["BROKER_URL"].replace(f":{port}", f":{proxy.port}", 1)
    )
    system.wait_until_ready()
    finish = tmp_path / "finish"
    waits = body("waits", f"while [ ! -e {finish} ]; do sleep 0.1; done", "now")
    (job,) = system.create_jobs(waits)
    system.wait_for(lambda: [row["state"] for row in system.executions(job)] == ["Active"], "it runs")
    proxy.go_away()
    finish.touch()
    system.wait_for(lambda: "events_held" in worker.text(), "its outcome is held")
    assert worker.stop(timeout_s=15) == 0
    assert "outcome_left_to_sweep" in worker.text()
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["attempt"], run["losses"]) == ("Completed Normally", 1, 0)
