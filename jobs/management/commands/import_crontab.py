"""``manage.py import_crontab``: makes jobs of the entries of a crontab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs.crontabs.carrying import Carriage, Carried, carry_over
from jobs.crontabs.lines import Complaint, Format, format_of, read_crontab
from jobs.crontabs.report import complaints_text, table
from jobs.declared.applying import carry_out, taking_turns
from jobs.declared.comparing import Action, Origin, Step, plan_steps
from jobs.declared.wanted import Place, Refused, Wanted
from jobs.management.files import counted, new_teams, operator, read_text, shown_path
from jobs.models import MisfirePolicy, Overlap
from jobs.schedules.zones import check_zone
from scheduler_project.commands import TerminalCommand
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidValue

ORIGIN = Origin("import_crontab", way_out="rename it, or give these jobs a --name-prefix")


class Command(TerminalCommand):
    help = (
        "Show the jobs that the entries of a crontab become, and what cannot be carried over; with --apply,"
        " make them. Done again it makes nothing new: an entry whose command is the same is the same job."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a crontab, or - for standard input")
        parser.add_argument("--owner", required=True, help="the team that the jobs will belong to")
        parser.add_argument("--apply", action="store_true", help="make the jobs that are new")
        parser.add_argument(
            "--update", action="store_true", help="with --apply: also change the jobs that differ"
        )
        parser.add_argument("--timezone", default="UTC", help="of entries without CRON_TZ (UTC)")
        parser.add_argument("--name-prefix", default="", help="what the jobs' names begin with")
        parser.add_argument(
            "--overlap", default="allow", choices=Overlap.values, help="of the jobs (allow, as in cron)"
        )
        parser.add_argument(
            "--misfire", default="none", choices=MisfirePolicy.values, help="of the jobs (none, as in cron)"
        )
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--system", action="store_true", help="with a column for the user")
        kind.add_argument("--user", action="store_true", help="without one")

    def handle(self, *_args: Any, **options: Any) -> None:
        format, why = _format(options)
        text = read_text(options["file"])
        self.stdout.write(f"{shown_path(options['file'])}: read as a {format} crontab ({why}).")
        jobs, complaints = carry_over(read_crontab(text, format), _carriage(options))
        places = [Place(shown_path(options["file"]), job.line) for job in jobs]
        wanted = [Wanted(job.definition, place) for job, place in zip(jobs, places, strict=True)]
        try:
            with taking_turns():
                steps = plan_steps(wanted, ORIGIN)
                self._show(jobs, steps, options)
                self._complain(complaints)
                self._apply(steps, options)
        except Refused as refused:
            raise CommandError(f"Nothing was changed.\n{refused.message}") from refused

    def _show(self, jobs: Sequence[Carried], steps: Sequence[Step], options: dict[str, Any]) -> None:
        self._write(
            f"Times without CRON_TZ are in {options['timezone']} (--timezone). The jobs belong to "
            f"{options['owner']}; overlap is {options['overlap']}, misfire {options['misfire']}.",
            *(f"The team {team} is not there and is made." for team in new_teams(steps)),
            "Cron starts commands in the home folder of the user; a run starts in a folder of its own.",
        )
        if jobs:
            self._write("", *table(jobs, steps, utcnow()))
        for step in steps:
            if step.action is Action.UPDATE:
                self._write("", f"{step.label} differs:", step.difference)

    def _complain(self, complaints: Sequence[Complaint]) -> None:
        if complaints:
            self._write("", "Not carried over, or not as it was:", *complaints_text(complaints))

    def _apply(self, steps: Sequence[Step], options: dict[str, Any]) -> None:
        """Makes what is new, and changes what differs where that is asked for."""
        if not options["apply"]:
            self._write("", f"Nothing was changed: {counted(steps)}. Make what is new with --apply.")
            return
        chosen = [step for step in steps if step.action is not Action.UPDATE or options["update"]]
        carry_out(chosen, operator("import_crontab"), utcnow())
        self._write("", f"Done: {counted(chosen, done=True)}.")
        if left := len(steps) - len(chosen):
            self._write(f"{left} that differ were left as they are; --update changes them.")

    def _write(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)


def _format(options: dict[str, Any]) -> tuple[Format, str]:
    """The format and why it is taken."""
    if options["system"] or options["user"]:
        return (Format.SYSTEM, "--system") if options["system"] else (Format.USER, "--user")
    found = format_of(options["file"])
    if found is Format.SYSTEM:
        return found, "its path says so; --user reads it without a column for the user"
    return found, "assumed; --system reads it with a column for the user"


def _carriage(options: dict[str, Any]) -> Carriage:
    try:
        zone = check_zone(options["timezone"], field="--timezone")
    except InvalidValue as error:
        raise CommandError(f"--timezone: {error.message}") from error
    return Carriage(
        owner=options["owner"],
        timezone=zone,
        name_prefix=options["name_prefix"],
        overlap=options["overlap"],
        misfire=options["misfire"],
    )
