"""Ledgers that runs keep of their own beginnings and ends, so that what overlaps is seen from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Ledger:
    def __init__(self, path: Path) -> None:
        self._path = path

    def entered(self, then: str) -> str:
        """A command that notes its beginning, does ``then``, and notes its end."""
        note = f'"$PUNCTUAL_JOB" >> {self._path}'
        return f"echo + {note}; {then}; echo - {note}"

    def begun(self) -> list[str]:
        """The names of the jobs, in the order in which their runs began."""
        return [name for sign, name in self._lines() if sign == "+"]

    def most_at_once(self, weights: dict[str, int] | None = None) -> int:
        """How many ran at once, or what they weigh together; a job without a weight weighs 1."""
        active = most = 0
        for sign, name in self._lines():
            weight = (weights or {}).get(name, 1)
            active += weight if sign == "+" else -weight
            most = max(most, active)
        return most

    def _lines(self) -> list[tuple[str, str]]:
        if not self._path.exists():
            return []
        lines = self._path.read_text().splitlines()
        return [(line[0], line[2:]) for line in lines]


def all_normal(rows: Iterable[dict[str, Any]]) -> bool:
    return set(Counter(row["state"] for row in rows)) == {"Completed Normally"}
