"""``manage.py doctor``: what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from django.core.management.base import CommandParser

from access.policy import Forbidden, sees_all
from scheduler_project.doctor.examining import WITHIN_S, examine, worst
from scheduler_project.doctor.findings import Finding, Level
from scheduler_project.doctor.parts import PARTS
from scheduler_project.operating.command import OperatorCommand, Options
from scheduler_project.operating.exits import Exit
from scheduler_project.operating.words import counted

SIGNS = {Level.OK: "ok  ", Level.WARNING: "warn", Level.FAILURE: "FAIL", Level.UNKNOWN: "?   "}
STYLES = {Level.WARNING: "WARNING", Level.FAILURE: "ERROR"}
INDENT = " " * 6
Found = Mapping[str, list[Finding]]


class Command(OperatorCommand):
    help = (
        "Look at every part, and say what to do about what is wrong. It takes some seconds at most, whatever"
        " is away, and changes nothing. Exit statuses: docs/commands.md."
    )
    parts = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "part", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"only these: {', '.join(PARTS)}"
        )
        parser.add_argument("--strict", action="store_true", help="a warning is a failure, too")
        parser.add_argument("--quiet", action="store_true", help="only what is wrong")
        self.add_common(parser)

    def act(self, options: Options) -> Exit:
        if not sees_all(self.user(options)):
            raise Forbidden(
                "doctor looks at the whole system: only superusers may, and who leaves --user out."
            )
        wanted = options["part"] or list(PARTS)
        found = examine({part: check for part, check in PARTS.items() if part in wanted}, WITHIN_S)
        if self.as_json:
            self.write_json(report_json(found))
        else:
            self._write(found, quiet=options["quiet"])
        return status_of(found, strict=options["strict"])

    def _write(self, found: Found, *, quiet: bool) -> None:
        for part, findings in found.items():
            shown = [finding for finding in findings if not quiet or finding.level is not Level.OK]
            if shown:
                self.stdout.write(part, self.style.MIGRATE_HEADING)
            for finding in shown:
                self._write_finding(finding)
        every = [finding for findings in found.values() for finding in findings]
        wrong = sum(finding.level is Level.FAILURE for finding in every)
        doubtful = sum(finding.level is Level.WARNING for finding in every)
        self.stdout.write(
            f"{counted(len(every), 'check')}: {counted(wrong, 'failure')}, {counted(doubtful, 'warning')}."
        )

    def _write_finding(self, finding: Finding) -> None:
        style = getattr(self.style, STYLES[finding.level]) if finding.level in STYLES else None
        for line in self._wrapped(f"{finding.check}: {finding.said}", SIGNS[finding.level] + "  "):
            self.stdout.write(line, style)
        if finding.todo:
            for line in self._wrapped(finding.todo, INDENT + "→ "):
                self.stdout.write(line)

    def _wrapped(self, text: str, first: str) -> Sequence[str]:
        if self.width is None:
            return [first + text]
        rest = " " * len(first)
        return wrap(text, self.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def report_json(found: Found) -> dict[str, Any]:
    return {
        "status": str(worst(found)),
        "checks": [
            {
                "part": part,
                "check": finding.check,
                "status": str(finding.level),
                "message": finding.said,
                "advice": finding.todo or None,
            }
            for part, findings in found.items()
            for finding in findings
        ],
    }


def status_of(found: Found, *, strict: bool) -> Exit:
    if any(finding.away for findings in found.values() for finding in findings):
        return Exit.UNAVAILABLE
    level = worst(found)
    if level is Level.FAILURE or (strict and level is not Level.OK):
        return Exit.REFUSED
    return Exit.DONE
