"""``manage.py apply_jobs``: brings the jobs in line with what files declare."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs.declared.applying import carry_out, taking_turns
from jobs.declared.comparing import Action, Origin, Step, plan_steps
from jobs.declared.manifests import read_manifest
from jobs.declared.wanted import Problem, Refused, Wanted
from jobs.management.files import counted, new_teams, operator, read_text, shown_path
from scheduler_project.commands import TerminalCommand
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidValue

SOMETHING_TO_DO = 2
SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.ARCHIVE: "-"}


class Command(TerminalCommand):
    help = (
        "Create and update jobs as YAML files declare them, all or none. A document is a job or a list of"
        " jobs, with the fields of POST /api/v1/jobs; a field that is left out has its default. Exit status:"
        " 0 done or nothing to do; 1 refused, nothing was changed; 2 with --dry-run if something is to do."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="a YAML file, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="show the difference, change nothing")
        parser.add_argument("--owner", default="", help="the team of jobs that name none")
        parser.add_argument(
            "--origin",
            default="apply_jobs",
            help="the mark of these files' jobs (apply_jobs); files that are applied apart need one each",
        )
        parser.add_argument(
            "--prune",
            action="store_true",
            help="archive the jobs of this origin that the files no longer declare; never any other job",
        )
        parser.add_argument(
            "--adopt", action="store_true", help="take over jobs of the same name that were made otherwise"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            wanted = self._read(options)
            with taking_turns():
                steps = self._plan(wanted, options)
                carry_out(steps, operator("apply_jobs"), utcnow(), keep=not options["dry_run"])
        except Refused as refused:
            raise CommandError(f"Nothing was changed.\n{refused.message}") from refused
        todo = any(step.action is not Action.KEEP for step in steps)
        if not todo:
            self.stdout.write(f"Nothing to do: {len(steps)} jobs are as declared.")
            return
        done = not options["dry_run"]
        self.stdout.write(f"{'Done' if done else 'To do'}: {counted(steps, done=done)}.")
        if options["dry_run"]:
            raise SystemExit(SOMETHING_TO_DO)

    def _read(self, options: dict[str, Any]) -> list[Wanted]:
        wanted: list[Wanted] = []
        problems: list[Problem] = []
        for path in options["files"]:
            found, wrong = read_manifest(read_text(path), shown_path(path), options["owner"])
            wanted += found
            problems += wrong
        if problems:
            raise Refused(problems)
        if options["prune"] and not wanted:
            raise CommandError("The files declare no job: --prune would archive all that they ever declared.")
        return wanted

    def _plan(self, wanted: list[Wanted], options: dict[str, Any]) -> list[Step]:
        try:
            origin = Origin(options["origin"], prune=options["prune"], adopt=options["adopt"])
        except InvalidValue as error:
            raise CommandError(f"--origin: {error.message}") from error
        steps = plan_steps(wanted, origin)
        self._show(steps, new_ones_whole=options["dry_run"])
        return steps

    def _show(self, steps: list[Step], *, new_ones_whole: bool) -> None:
        for team in new_teams(steps):
            self.stdout.write(f"+ team {team}")
        for step in steps:
            if step.action is not Action.KEEP:
                self.stdout.write(f"{SIGNS[step.action]} {step.action} {step.label}")
            if step.difference and (new_ones_whole or step.action is not Action.CREATE):
                self.stdout.write(step.difference)
