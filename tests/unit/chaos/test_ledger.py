"""The ledger, written by a shell as runs write it."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scheduler_project.chaos.ledger import Ledger
from scheduler_project.kernel.clock import utcnow

PLANNED = datetime(2026, 12, 1, 2, 0, 5, 250_000, tzinfo=UTC)
OF_RUN = {
    "PUNCTUAL_JOB": "steady-7",
    "PUNCTUAL_SCHEDULED_FOR": "2026-12-01T02:00:05.250Z",
    "PUNCTUAL_ATTEMPT": "2",
}


def run(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], env=OF_RUN, check=True)


def test_a_run_notes_its_beginning_and_its_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "led ger")
    begun = utcnow()
    run(ledger.command(0.2))
    assert ledger.read() == 2
    seen = ledger.runs["steady-7", PLANNED]
    assert (seen.attempts, seen.ended, ledger.ended) == ([2], 1, 1)
    assert abs(seen.started[0] - begun) < timedelta(seconds=1)


def test_one_that_is_killed_has_begun_and_not_ended(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    run(ledger.command(1).replace("sleep 1", "exit 0"))
    ledger.read()
    assert [(len(seen.started), seen.ended) for seen in ledger.runs.values()] == [(1, 0)]


def test_a_second_start_and_a_second_end_are_one_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    for _ in range(2):
        run(ledger.command(0))
        ledger.read()
    assert [(len(seen.started), seen.ended) for seen in ledger.runs.values()] == [(2, 2)]
    assert ledger.ended == 1


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    line = "+ steady-7 2026-12-01T02:00:05.250Z 1 12.34\n"
    with (tmp_path / "ledger").open("a") as file:
        file.write(line + line[:20])
        file.flush()
        assert ledger.read() == 1
        file.write(line[20:])
        file.flush()
        assert ledger.read() == 1
    assert len(ledger.runs["steady-7", PLANNED].started) == 2
