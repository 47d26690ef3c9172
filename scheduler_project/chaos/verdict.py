"""What should have run beside what did: from the plan and the ledger, then from what Punctual knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL

from scheduler_project.chaos.ledger import Key, Seen
from scheduler_project.kernel.resources import read_queries

COMPLETED = "Completed Normally"
_QUERIES = read_queries(__package__, "sql/chaos.sql")
_SENT = re.compile(r"^(\S+Z) \w+ beat\.dispatcher runs_sent ", re.MULTILINE)


class Records:
    """What Punctual knows, asked of its database without a proxy."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def close(self) -> None:
        self._connection.close()

    def ended(self) -> int:
        return int(self._ask("ended")[0]["count"])

    def runs(self) -> dict[Key, dict[str, Any]]:
        return {(row["name"], row["scheduled_for"]): row for row in self._ask("planned")}

    def history(self, execution_id: str) -> list[dict[str, Any]]:
        return self._ask("history", execution_id)

    def recorder_gap_s(self, since: datetime, until: datetime) -> float:
        return float(self._ask("recorder_gap", since, until)[0]["coalesce"])

    def auditor_gap_s(self, since: datetime, until: datetime) -> float:
        return float(self._ask("auditor_gap", since, until)[0]["coalesce"])

    def _ask(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        return self._connection.execute(SQL(_QUERIES[query]), parameters or None).fetchall()


@dataclass(frozen=True, slots=True)
class Verdict:
    """``lost``: due, and without an end, in the ledger or as Punctual knows it. ``not_due``: started, though
    nobody planned it. ``by_loss``: of those that started twice, how often a later attempt took the place of
    one whose worker was lost, as it should; the rest is a defect."""

    due: int
    started: int
    finished: int
    lost: Sequence[Key]
    started_twice: Sequence[Key]
    by_loss: int
    not_due: Sequence[Key]
    latest_start_s: float

    @property
    def holds(self) -> bool:
        return not self.lost and not self.not_due


def judge(
    due: Iterable[Key], ledger: Mapping[Key, Seen], records: Mapping[Key, Mapping[str, Any]]
) -> Verdict:
    planned = set(due)
    started = {key: seen for key, seen in ledger.items() if seen.started}
    finished = {
        key for key in planned if key in ledger and ledger[key].ended and _completed(records.get(key))
    }
    twice = sorted(key for key, seen in started.items() if len(seen.started) > 1)
    return Verdict(
        due=len(planned),
        started=len(planned & started.keys()),
        finished=len(finished),
        lost=sorted(planned - finished),
        started_twice=twice,
        by_loss=sum(len(set(started[key].attempts)) == len(started[key].attempts) for key in twice),
        not_due=sorted(started.keys() - planned),
        latest_start_s=max(
            ((min(seen.started) - at).total_seconds() for (_, at), seen in started.items()), default=0.0
        ),
    )


def _completed(row: Mapping[str, Any] | None) -> bool:
    return row is not None and row["state"] == COMPLETED


def starts(ledger: Mapping[Key, Seen]) -> Iterator[datetime]:
    """Every start of a run, by the ledger."""
    return (at for seen in ledger.values() for at in seen.started)


def sendings(logs: Iterable[str]) -> Iterator[datetime]:
    """Every time that a beat sent runs, by what beats write into their logs."""
    return (datetime.fromisoformat(at) for log in logs for at in _SENT.findall(log))


def longest_gap_s(times: Iterable[datetime], since: datetime, until: datetime) -> float:
    """The longest time, in s, in which nothing of it happened, between two times in [since, until]."""
    within = sorted(at for at in times if since <= at <= until)
    return max(((later - one).total_seconds() for one, later in pairwise(within)), default=0.0)
