"""Whether the demo has shown what it is to show, and the table of it (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

COMPLETED_NORMALLY = "Completed Normally"
COMPLETED_ABNORMALLY = "Completed Abnormally"
HEADINGS = ("job", "status", "attempts", "due", "started", "lateness", "duration", "exit code")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """``started_at`` is the start of the first attempt."""

    job: str
    state: str
    attempts: int
    due: datetime
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    reason: str = ""

    @property
    def lateness(self) -> timedelta | None:
        return self.started_at - self.due if self.started_at else None

    @property
    def duration(self) -> timedelta | None:
        return self.finished_at - self.started_at if self.started_at and self.finished_at else None


def is_shown(run: DemoRun, failing_attempts: int | None) -> bool:
    """Whether ``run`` ended as its job's runs are to end.

    ``failing_attempts``: of a job that is there to fail, the attempts that it has; else None.
    """
    if failing_attempts is None:
        return run.state == COMPLETED_NORMALLY
    return run.state == COMPLETED_ABNORMALLY and run.attempts == failing_attempts


def shown_runs(runs: Sequence[DemoRun], jobs: Mapping[str, int | None]) -> dict[str, DemoRun]:
    """The first run of each of ``jobs`` that ended as it should; ``jobs`` gives their failing attempts."""
    found: dict[str, DemoRun] = {}
    for run in sorted(runs, key=lambda run: run.due):
        if run.job in jobs and run.job not in found and is_shown(run, jobs[run.job]):
            found[run.job] = run
    return found


def missing_text(runs: Sequence[DemoRun], jobs: Mapping[str, int | None]) -> str:
    """What is not shown, job by job, with the state of its latest run that has begun."""
    shown = shown_runs(runs, jobs)
    texts = []
    for job in jobs:
        if job in shown:
            continue
        own = [run for run in runs if run.job == job]
        latest = max(own, key=lambda run: (run.started_at is not None, run.due), default=None)
        texts.append(f"{job}: {_standing(latest) if latest else 'no run'}")
    return "; ".join(texts)


def table(runs: Sequence[DemoRun]) -> list[str]:
    """One line a run under one line of headings, in columns."""
    rows = [HEADINGS, *(_row(run) for run in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(run: DemoRun) -> tuple[str, ...]:
    return (
        run.job,
        run.state,
        str(run.attempts),
        _clock_time(run.due),
        _clock_time(run.started_at),
        _seconds(run.lateness),
        _seconds(run.duration),
        "-" if run.exit_code is None else str(run.exit_code),
    )


def _standing(run: DemoRun) -> str:
    parts = [f"attempt {run.attempts}", run.reason]
    if run.exit_code is not None:
        parts.append(f"exit code {run.exit_code}")
    return f"{run.state} ({', '.join(part for part in parts if part)})"


def _clock_time(instant: datetime | None) -> str:
    return f"{instant:%H:%M:%S}.{instant.microsecond // 1000:03d}" if instant else "-"


def _seconds(length: timedelta | None) -> str:
    return f"{length.total_seconds():.3f} s" if length is not None else "-"
