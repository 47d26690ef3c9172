"""Runs that fall due one after another while something is done to the system, and what became of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.e2e.test_runs import body
from tests.system import System

SECOND = timedelta(seconds=1)
STARTED = ("JOB_QUEUED", "JOB_STARTED", "JOB_COMPLETED")


@dataclass(frozen=True, slots=True)
class Stream:
    """``jobs``, of one run each; ``ledger`` has a line for each start of a command."""

    system: System
    jobs: list[str]
    ledger: Path

    def starts(self) -> Counter[str]:
        return Counter(self.ledger.read_text().split()) if self.ledger.exists() else Counter()

    def wait_for_starts(self, number: int) -> None:
        self.system.wait_for(lambda: len(self.starts()) >= number, f"{number} have begun")

    def ended(self) -> list[dict[str, Any]]:
        """All runs, which have completed normally, each of them recorded in order and in the history."""
        rows = self.system.wait_all_terminal(self.jobs, len(self.jobs))
        assert Counter(row["state"] for row in rows) == {"Completed Normally": len(self.jobs)}
        for row in rows:
            assert row["started_at"] <= row["finished_at"]
        ids = [str(row["id"]) for row in rows]
        self.system.wait_for(lambda: self._told(ids), "the history is complete")
        return rows

    def ended_once(self) -> list[dict[str, Any]]:
        """``ended``, and each command was started once, by the first attempt."""
        rows = self.ended()
        assert self.starts() == {str(row["id"]): 1 for row in rows}
        assert {row["attempt"] for row in rows} == {1}
        return rows

    def _told(self, ids: list[str]) -> bool:
        found = self.system.query(
            "SELECT execution_id, count(*) FILTER (WHERE type = 'JOB_STARTED') AS starts,"
            " count(*) FILTER (WHERE type = 'JOB_COMPLETED') AS ends,"
            " min(at) FILTER (WHERE type = 'JOB_STARTED') <= max(at) FILTER (WHERE type = 'JOB_COMPLETED')"
            " AS in_order FROM executions_executionevent WHERE execution_id = ANY(%s::uuid[]) GROUP BY 1",
            ids,
        )
        told = [row for row in found if row["starts"] and row["ends"] == 1 and row["in_order"]]
        return len(told) == len(ids)


def begin_stream(
    system: System, name: str, number: int, over: timedelta, after: timedelta = 2 * SECOND, **fields: Any
) -> Stream:
    """``number`` runs, the first of them due ``after`` from now, the last ``over`` later."""
    ledger = system.home / f"{name} {len(system.query('SELECT 1 FROM jobs_job'))}.ledger"
    command = f'echo "$PUNCTUAL_EXECUTION_ID" >> "{ledger}"'
    step = over / max(1, number - 1)
    jobs = system.create_jobs(
        *[
            body(
                f"{ledger.stem} {at}",
                command,
                {"after": f"{(after + at * step) // (SECOND / 1000)}ms"},
                **fields,
            )
            for at in range(number)
        ]
    )
    return Stream(system, jobs, ledger)


def lateness(rows: list[dict[str, Any]]) -> timedelta:
    """How long after its due time the latest of them was on its way to a worker. How long that takes to begin
    it says more about what else the machine does."""
    late: list[timedelta] = [
        min(row["queued_at"] or row["started_at"], row["started_at"]) - row["scheduled_for"] for row in rows
    ]
    return max(late)


def due_between(rows: list[dict[str, Any]], since: datetime, until: datetime) -> list[dict[str, Any]]:
    return [row for row in rows if since <= row["scheduled_for"] <= until]
