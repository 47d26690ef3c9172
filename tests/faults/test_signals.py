"""SIGTERM in the middle of a batch, once and twice: what is in hand is finished, or comes again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from kombu import Connection

from scheduler_project.kernel.clock import monotonic
from tests.e2e.test_runs import body
from tests.system import Process, System, running_system

RUNS = 50
TERM = signal.SIGTERM


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system"), PUNCTUAL_RUN_LEASE="3s") as found:
        found.start_all("beat beat worker recorder auditor")
        found.wait_until_ready()
        yield found


def living(system: System, kind: str) -> Process:
    found = [process for process in system.processes if process.kind == kind and process.alive]
    return found[0] if found else replace(system, kind)


def replace(system: System, kind: str) -> Process:
    """Start another; until then there is none, or one less."""
    process = system.start(kind)
    system.wait_for(lambda: process.up, f"another {kind} is up")
    return process


def begin(system: System, finish: Path) -> dict[str, Any]:
    """A run that is Active until ``finish`` is there."""
    waits = body(f"waits-{uuid4()}", f"while [ ! -e {finish} ]; do sleep 0.05; done", "now")
    (job,) = system.create_jobs(waits)
    system.wait_for(lambda: system.executions(job)[0]["state"] == "Active", "it runs")
    return system.executions(job)[0]


@contextmanager
def held_up(system: System, run: dict[str, Any]) -> Iterator[None]:
    """Whoever wants to write the run's row waits."""
    with psycopg.connect(system.database_url) as other:
        other.execute("SELECT 1 FROM executions_execution WHERE id = %s FOR UPDATE", [run["id"]])
        yield


def waits_for_a_lock(system: System) -> bool:
    text = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(system.query(text))


def state_of(system: System, run: dict[str, Any]) -> str:
    (row,) = system.query("SELECT state FROM executions_execution WHERE id = %s", run["id"])
    return str(row["state"])


def waiting(system: System, queue: str) -> int:
    with Connection(system.env["BROKER_URL"]) as connection:
        channel: Any = connection.channel()
        return int(channel.queue_declare(queue, passive=True).message_count)


def test_a_recorder_finishes_its_batch_before_it_ends(system: System, tmp_path: Path) -> None:
    run, recorder = begin(system, tmp_path / "finish"), living(system, "recorder")
    with held_up(system, run):
        (tmp_path / "finish").touch()
        system.wait_for(lambda: waits_for_a_lock(system), "the recorder is in the middle of its batch")
        recorder.signal(TERM)
        with pytest.raises(AssertionError):
            system.wait_for(lambda: not recorder.alive, "it ends", timeout_s=0.5)
    assert recorder.wait(20) == 0
    assert state_of(system, run) == "Completed Normally"
    assert waiting(system, "punctual.recorder") == 0  # nothing of it has gone back
    replace(system, "recorder")


def insist(process: Process) -> int:
    """SIGTERM every quarter of a second: two that come at once may be heard as one. The exit code."""
    until = monotonic() + 20
    while process.alive and monotonic() < until:
        process.signal(TERM)
        time.sleep(0.25)
    return process.wait(0.1)


def test_a_second_signal_ends_a_recorder_at_once_and_its_batch_comes_again(
    system: System, tmp_path: Path
) -> None:
    run, recorder = begin(system, tmp_path / "finish"), living(system, "recorder")
    with held_up(system, run):
        (tmp_path / "finish").touch()
        system.wait_for(lambda: waits_for_a_lock(system), "the recorder is in the middle of its batch")
        assert insist(recorder) == -TERM
    replace(system, "recorder")
    system.wait_for(lambda: state_of(system, run) == "Completed Normally", "the next one records it")


@pytest.mark.parametrize("end", [Process.stop, insist], ids=["once", "twice"])
def test_a_beat_that_is_told_to_end_while_runs_are_due_loses_and_doubles_none(
    system: System, end: Callable[[Process], int]
) -> None:
    beat = living(system, "beat")
    name = uuid4()
    jobs = system.create_jobs(*[body(f"{name}-{n}", "true", {"after": "1s"}) for n in range(RUNS)])
    system.wait_for(lambda: any(row["queued_at"] for row in system.executions(*jobs)), "the first were sent")
    assert end(beat) in {0, -TERM}
    rows = system.wait_all_terminal(jobs, RUNS)
    assert {(row["state"], row["attempt"], row["losses"]) for row in rows} == {("Completed Normally", 1, 0)}
    starts = (
        "SELECT count(*) AS number FROM executions_executionevent"
        " WHERE type = 'JOB_STARTED' AND execution_id = ANY(%s)"
    )
    ids = [row["id"] for row in rows]
    system.wait_for(lambda: system.query(starts, ids)[0]["number"] >= RUNS, "all starts are in the history")
    assert system.query(starts, ids)[0]["number"] == RUNS
    replace(system, "beat")


def test_a_second_signal_does_not_keep_a_worker_from_handing_over(system: System, tmp_path: Path) -> None:
    run, worker = begin(system, tmp_path / "finish"), living(system, "worker")
    insist(worker)
    replace(system, "worker")
    (tmp_path / "finish").touch()
    system.wait_for(lambda: state_of(system, run) == "Completed Normally", "another has taken it up")
    (row,) = system.query("SELECT attempt, losses FROM executions_execution WHERE id = %s", run["id"])
    assert (row["attempt"], row["losses"]) == (1, 0)
