"""kill -9 and SIGSTOP, longer than every lease, with the leases that a deployment has by default.

PUNCTUAL_RUN_LEASE is 10 s, the others are shorter. A minute (PUNCTUAL_TEST_STALL_S=60) adds to the twelve
seconds of each time that RabbitMQ hangs up on whoever is stalled.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.streams import SECOND, begin_stream, lateness
from tests.faults.test_worker import assert_goes_on_once, begin_long_run, holder
from tests.system import Process, System, running_system

pytestmark = pytest.mark.timeout(300)
STALL_S = float(os.environ.get("PUNCTUAL_TEST_STALL_S", "12"))


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system")) as found:
        found.start_all("beat beat worker worker recorder recorder auditor")
        found.wait_until_ready()
        yield found


def living(system: System, kind: str) -> list[Process]:
    return [process for process in system.processes if process.kind == kind and process.alive]


@contextmanager
def stalled(*processes: Process) -> Iterator[None]:
    for process in processes:
        process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.signal(signal.SIGCONT)


def test_a_beat_that_stalls_makes_nothing_late_and_repeats_nothing_when_it_wakes(system: System) -> None:
    beat = living(system, "beat")[0]
    stream = begin_stream(system, "stalled beat", 40, 6 * SECOND)
    stream.wait_for_starts(5)
    with stalled(beat):
        time.sleep(STALL_S)  # the fault itself
    assert lateness(stream.ended_once()) < 3 * SECOND
    begin_stream(system, "after it woke", 10, SECOND).ended_once()


def test_a_worker_a_recorder_and_an_auditor_that_stall_lose_and_repeat_nothing(system: System) -> None:
    worker = living(system, "worker")[0]
    job, _ = begin_long_run(system, worker, f"long {len(system.query('SELECT 1 FROM jobs_job'))}", 600)
    mine = next(w for w in living(system, "worker") if holder(system, job, []).startswith(f"{w.name}@"))
    stream = begin_stream(system, "stalled", 40, 6 * SECOND)
    stream.wait_for_starts(5)
    with stalled(mine, living(system, "recorder")[0], living(system, "auditor")[0]):
        time.sleep(STALL_S)  # the fault itself
    rows = stream.ended()
    assert stream.starts() == {str(row["id"]): 1 for row in rows}
    assert_goes_on_once(system, job)


def test_a_beat_that_dies_makes_no_run_later_than_three_seconds(system: System) -> None:
    """Something else on the machine may spoil a round; it does not spoil three."""
    late = []
    for _ in range(3):
        stream = begin_stream(system, "dead beat", 60, 6 * SECOND)
        stream.wait_for_starts(20)
        living(system, "beat")[0].kill()
        late.append(lateness(stream.ended_once()))
        system.start("beat")
        system.wait_until_ready()
        if late[-1] < 3 * SECOND:
            break
    print(f"a beat died: the latest run was sent late by {late[-1]}")  # noqa: T201 -- pytest -s
    assert min(late) < 3 * SECOND
