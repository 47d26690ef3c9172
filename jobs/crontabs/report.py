"""What an import of a crontab will make, as people read it (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from jobs.crontabs.lines import Complaint
from jobs.declared.comparing import Action, Step
from jobs.definitions import JobDefinition
from jobs.schedules import Cron, describe, preview_fires, warnings

HEADINGS = ("line", "", "job", "schedule", "next (UTC)", "command")
WIDEST_COMMAND = 60
WORDS = {Action.CREATE: "new", Action.UPDATE: "differs", Action.KEEP: "there"}


def table(steps: Sequence[Step], now: datetime) -> Iterator[str]:
    """Two lines a job: its cells, and below them its schedule as a sentence and what may surprise."""
    rows = [HEADINGS, *(_cells(step, now) for step in steps)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    yield _line(rows[0], widths)
    for row, step in zip(rows[1:], steps, strict=True):
        yield _line(row, widths)
        definition = _definition(step)
        for text in (describe(definition.schedule), *warnings(definition.schedule, now)):
            yield " " * (widths[0] + 2) + text


def complaints_text(complaints: Sequence[Complaint]) -> Iterator[str]:
    width = max((len(str(complaint.line)) for complaint in complaints), default=0)
    for complaint in complaints:
        yield f"line {complaint.line:>{width}}: {complaint.text}"


def _cells(step: Step, now: datetime) -> tuple[str, ...]:
    assert step.wanted is not None  # noqa: S101 -- for mypy
    definition = step.wanted.definition
    schedule = definition.schedule
    assert isinstance(schedule, Cron)  # noqa: S101 -- a crontab has no other
    fires = preview_fires(schedule, now, 1)
    return (
        str(step.wanted.place.line),
        WORDS[step.action],
        definition.name,
        f"{schedule.rule.text} {schedule.rule.timezone}",
        f"{fires[0]:%Y-%m-%d %H:%M}" if fires else "never",
        _one_line(definition.command),
    )


def _definition(step: Step) -> JobDefinition:
    assert step.wanted is not None  # noqa: S101 -- for mypy
    return step.wanted.definition


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join([first.strip().rjust(widths[0]), *others]).rstrip()


def _one_line(command: str) -> str:
    text = " ⏎ ".join(command.strip().splitlines())
    return text if len(text) <= WIDEST_COMMAND else text[: WIDEST_COMMAND - 1] + "…"
