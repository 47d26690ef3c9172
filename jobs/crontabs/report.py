"""What an import of a crontab will make, as people read it (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from jobs.crontabs.carrying import Carried
from jobs.crontabs.lines import Complaint
from jobs.declared.comparing import Action, Step
from jobs.schedules import Cron, describe, preview_fires, warnings

HEADINGS = ("line", "", "job", "schedule", "next (UTC)", "command")
WIDEST_COMMAND = 60
WORDS = {Action.CREATE: "new", Action.UPDATE: "differs", Action.KEEP: "there"}


def table(jobs: Sequence[Carried], steps: Sequence[Step], now: datetime) -> Iterator[str]:
    """Each job's cells, and below them its schedule as a sentence and what may surprise."""
    rows = [HEADINGS, *(_cells(job, step, now) for job, step in zip(jobs, steps, strict=True))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    yield _line(rows[0], widths)
    for row, job in zip(rows[1:], jobs, strict=True):
        yield _line(row, widths)
        schedule = job.definition.schedule
        for text in (describe(schedule), *warnings(schedule, now)):
            yield " " * (widths[0] + 2) + text


def complaints_text(complaints: Sequence[Complaint]) -> Iterator[str]:
    width = max((len(str(complaint.line)) for complaint in complaints), default=0)
    for complaint in complaints:
        yield f"line {complaint.line:>{width}}: {complaint.text}"


def _cells(job: Carried, step: Step, now: datetime) -> tuple[str, ...]:
    schedule = job.definition.schedule
    assert isinstance(schedule, Cron)  # noqa: S101 -- a crontab has no other
    fires = preview_fires(schedule, now, 1)
    return (
        str(job.line),
        WORDS[step.action],
        job.definition.name,
        f"{schedule.rule.text} {schedule.rule.timezone}",
        f"{fires[0]:%Y-%m-%d %H:%M}" if fires else "never",
        _shortened(job.command.strip()),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join([first.strip().rjust(widths[0]), *others]).rstrip()


def _shortened(command: str) -> str:
    return command if len(command) <= WIDEST_COMMAND else command[: WIDEST_COMMAND - 1] + "…"
