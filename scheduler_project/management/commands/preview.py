"""``manage.py preview``: when a job, or a schedule that no job has yet, will run."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from executions.api import parameters
from jobs.api.previews import preview_json
from jobs.finding import job_called
from jobs.previews import DEFAULT_COUNT, MAX_COUNT, Preview, preview_job, preview_schedule
from jobs.schedules import Schedule, parse_schedule
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.texts import shown
from scheduler_project.operating.command import OperatorCommand, Options, option
from scheduler_project.operating.exits import Exit


class Command(OperatorCommand):
    help = (
        "The next fires of a job, or of a schedule: a cron expression, a JSON object as in REST, every 10s,"
        " or an instant. Times, a sentence, and what may surprise. Exit statuses: docs/commands.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "target",
            metavar="JOB|SCHEDULE",
            help="what can be read as a schedule is one; a job of such a name is written OWNER/NAME",
        )
        parser.add_argument(
            "--count",
            type=option(parameters.whole_number(1, MAX_COUNT), "count"),
            default=DEFAULT_COUNT,
            help=f"how many fires ({DEFAULT_COUNT})",
        )
        parser.add_argument(
            "--after", type=option(parameters.instant, "after"), help="the fires after this instant (now)"
        )
        parser.add_argument("--timezone", default="", metavar="ZONE", help="of a cron expression (UTC)")
        self.add_common(parser)

    def act(self, options: Options) -> None:
        preview = self._preview(options)
        if self.as_json:
            self.write_json(preview_json(preview))
            return
        self.stdout.write(preview.description)
        self.write_lines([self.time(fire) for fire in preview.fires])
        for warning in preview.warnings:
            self.stdout.write(f"! {warning}", self.style.WARNING)

    def _preview(self, options: Options) -> Preview:
        target, count = options["target"], options["count"]
        after = options["after"] or utcnow()
        schedule = _schedule_in(target, options["timezone"])
        if isinstance(schedule, Schedule):
            return preview_schedule(schedule, after, count)
        if options["timezone"]:
            raise CommandError(f"--timezone: {schedule.message}", returncode=Exit.USAGE)
        try:
            return preview_job(job_called(target, self.user(options)), after, count)
        except NotFound:
            if looks_like_schedule(target):
                raise schedule from None
            raise NotFound(
                f"There is no job {shown(target)}, and it is no schedule either: {schedule.message}."
            ) from None


def _schedule_in(text: str, zone: str) -> Schedule | InvalidValue:
    """The schedule, or why it is none."""
    try:
        return parse_schedule(_form_of(text.strip(), zone))
    except InvalidValue as error:
        return error


def _form_of(text: str, zone: str) -> Any:
    """As REST takes it."""
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"{shown(text)} is not JSON: {error}") from error
    return {"cron": text, "timezone": zone} if zone else text


def looks_like_schedule(text: str) -> bool:
    """Whether the one who wrote it will have meant a schedule, though it is none."""
    return text.lstrip()[:1] in "{@*" or len(text.split()) in (5, 6)
