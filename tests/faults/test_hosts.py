"""Hosts in trouble: a clock an hour off, a full disk, a name that is somebody else's."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.e2e.test_runs import body, log_of
from tests.faults.streams import SECOND, begin_stream
from tests.system import ROOT, System, running_system

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.timeout(300)
TIMES = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENQUEUE_TIMEOUT": "15s"}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system"), **TIMES) as found:
        found.start_all()
        found.wait_until_ready()
        yield found


@pytest.fixture(scope="module")
def wrong_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library to be preloaded; what it does is said in its source."""
    built = tmp_path_factory.mktemp("wrong_clock") / "wrong_clock.so"
    source = ROOT / "tests" / "wrong_clock.c"
    subprocess.run(["cc", "-Wall", "-Werror", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True)
    return built


@contextmanager
def instead(system: System, kind: str, **env: str) -> Iterator[None]:
    """One of that kind with ``env`` in place of the one that is there."""
    (usual,) = (process for process in system.processes if process.kind == kind and process.alive)
    assert usual.stop() == 0
    other = system.start(kind, **env)
    system.wait_until_ready()
    try:
        yield
    finally:
        other.kill()
        system.start(kind)
        system.wait_until_ready()


@pytest.mark.parametrize(("kind", "hours"), [("beat", 1), ("recorder", -1), ("worker", 1), ("worker", -1)])
def test_a_clock_that_is_an_hour_off_starts_nothing_early_late_or_twice(
    system: System, wrong_clock: Path, kind: str, hours: int
) -> None:
    env = {"LD_PRELOAD": str(wrong_clock), "WRONG_CLOCK_S": str(hours * 3600)}
    with instead(system, kind, **env):
        stream = begin_stream(system, f"{kind} {hours:+d}", 20, 2 * SECOND)
        for row in stream.ended_once():
            off = hours * HOUR if kind == "worker" else timedelta(0)  # it writes down what its clock says
            assert timedelta(0) <= row["started_at"] - off - row["scheduled_for"] < 3 * SECOND


def test_beats_and_workers_of_one_host_name_are_told_apart(system: System) -> None:
    """As two containers of one host name are; a process id may be the same, too."""
    other = system.start("beat")
    system.wait_until_ready()
    stream = begin_stream(system, "one name", 40, 2 * SECOND)
    stream.ended_once()
    beats = [process for process in system.processes if process.kind == "beat" and process.alive]
    sent = Counter(process.name for process in beats if "runs_sent" in process.text())
    assert len(sent) == 2
    assert other.stop() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_runs_whose_worker_has_no_room_for_logs_end_as_they_would_and_the_next_have_theirs(
    system: System, small_disk: Path
) -> None:
    own = {"PUNCTUAL_LOG_DIR": str(small_disk), "PUNCTUAL_LOG_ARCHIVE": str(system.home / "logs" / "archive")}
    worker = system.start("worker", PUNCTUAL_WORKER_QUEUES="small", **own)
    system.wait_until_ready()
    much = (
        'i=0; while [ $i -lt 20 ]; do head -c 100000 /dev/zero | tr "\\0" x; echo; i=$((i+1)); done; exit 3'
    )
    (job,) = system.create_jobs(body(f"much {worker.name}", much, "now", queue="small"))
    (row,) = system.wait_all_terminal([job], 1)
    assert (row["state"], row["exit_code"], row["attempt"]) == ("Completed Abnormally", 3, 1)
    (job,) = system.create_jobs(body(f"little {worker.name}", "echo little", "now", queue="small"))
    (row,) = system.wait_all_terminal([job], 1)
    assert (row["state"], row["attempt"]) == ("Completed Normally", 1)
    assert log_of(system, row, 1) == "little\n"
    assert worker.stop() == 0
