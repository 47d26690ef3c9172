"""The ledger: a file to which the runs themselves append when they begin and when they end.

    + steady-7 2026-12-01T02:00:05.250Z 1 5183.27        job, planned time, attempt, uptime in seconds
    - steady-7 2026-12-01T02:00:05.250Z 1 5183.27

The command does it with what a shell has built in: no process is started for it. A short line written to a
file that is opened for appending is there whole.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from scheduler_project.kernel.clock import utcnow

UPTIME = Path("/proc/uptime")
Key = tuple[str, datetime]


@dataclass(slots=True)
class Seen:
    """What a run has said of itself: when it started, each time by which attempt, and how often it ended."""

    started: list[datetime] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    ended: int = 0


class Ledger:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self._boot = utcnow() - timedelta(seconds=float(UPTIME.read_text().split()[0]))
        self.runs: dict[Key, Seen] = defaultdict(Seen)
        self.ended = 0
        path.touch()

    def command(self, lasts_s: float) -> str:
        """What a run does that lasts so long."""
        note = (
            "read -r up _ </proc/uptime"
            f'; echo "{{sign}} $PUNCTUAL_JOB $PUNCTUAL_SCHEDULED_FOR $PUNCTUAL_ATTEMPT $up"'
            f" >>{shlex.quote(str(self._path))}"
        )
        lines = [note.format(sign="+"), *([f"sleep {lasts_s:g}"] if lasts_s else []), note.format(sign="-")]
        return "\n".join(lines) + "\n"

    def read(self) -> int:
        """Take in what was appended since; how many lines that were."""
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read_to += len(whole)
        lines = whole.decode().splitlines()
        for line in lines:
            self._take(line)
        return len(lines)

    def _take(self, line: str) -> None:
        sign, job, planned, attempt, uptime = line.split()
        seen = self.runs[job, datetime.fromisoformat(planned)]
        if sign == "-":
            self.ended += not seen.ended
            seen.ended += 1
        else:
            seen.started.append(self._boot + timedelta(seconds=float(uptime)))
            seen.attempts.append(int(attempt))
