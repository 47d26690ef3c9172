"""``manage.py jobs``: what there is to be run, and what an operator does with it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser

from executions.api import parameters
from executions.api.filters import filters_of, narrowed
from executions.api.orders import place
from executions.api.presentation import cancelled_json, execution_json
from executions.keys import read_key
from executions.listing import find_execution, team_names
from jobs.api.filters import ORDERS, JobFilter
from jobs.api.presentation import job_json
from jobs.cancelling import CancelledRun, cancel_runs
from jobs.finding import job_called
from jobs.listing import NOT_YET_LATE, latest_runs, next_runs, visible_jobs
from jobs.models import Job, Missed
from jobs.previews import preview_job
from jobs.runs import RunRequest, run_job
from jobs.services import archive_job, pause_job, resume_job
from jobs.stored_schedules import schedule_text
from scheduler_project.kernel.clock import utcnow
from scheduler_project.operating.command import OperatorCommand, Options, field_lines, option
from scheduler_project.operating.exits import Exit
from scheduler_project.operating.log_output import follow_log
from scheduler_project.operating.parameters import read_parameters
from scheduler_project.operating.tables import Column
from scheduler_project.operating.words import CANCELLING

COLUMNS = (
    Column("ID"),
    Column("JOB", shrinks=True),
    Column("SCHEDULE", shrinks=True),
    Column("NEXT RUN"),
    Column("IS"),
)
SHORT_ID = 8
FIRES_SHOWN = 5
JOB = "an id or the beginning of one, OWNER/NAME, or a name that only one job has"


class Command(OperatorCommand):
    help = "List, show, run, pause, resume, cancel and archive jobs. Exit statuses: docs/commands.md."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        self._add_list(actions)
        self._add_for_one(actions, "show", self.show_job, "Its fields, its next and its latest run.")
        run = self._add_for_one(actions, "run", self.run_job, "Run it now, beside its schedule.")
        run.add_argument(
            "-p",
            "--parameter",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter in place of the job's; VALUE is JSON where it can be read as such, else a text",
        )
        run.add_argument(
            "-f",
            "--follow",
            action="store_true",
            help="write its output until it has ended; exit status 1 unless it completed normally",
        )
        run.add_argument("--key", default=None, help="idempotency key: the same key gives the same run")
        self._add_for_several(actions, "pause", self.pause_jobs, "Nothing starts any more; runs go on.")
        resume = self._add_for_several(actions, "resume", self.resume_jobs, "They go on.")
        resume.add_argument(
            "--missed",
            choices=Missed.values,
            default=str(Missed.SKIP),
            help="what becomes of the times that passed meanwhile (skip)",
        )
        cancel = self._add_for_several(
            actions, "cancel", self.cancel_jobs, "Cancel their runs that wait or run; the jobs go on."
        )
        cancel.add_argument("--running", action="store_true", help="only what has begun, not what waits")
        self._add_for_several(
            actions, "archive", self.archive_jobs, "Delete them: what waits is cancelled, the history stays."
        )

    def _add_list(self, actions: Any) -> None:
        listing = self.add_action(actions, "list", self.list_jobs, "The jobs, in the order of their ids.")
        for name, reader in filters_of(JobFilter).items():
            told = reader.schema["description"].rstrip(".")
            listing.add_argument(f"--{name}", type=option(reader, name), help=told[0].lower() + told[1:])
        listing.add_argument(
            "--ordering",
            type=option(ORDERS.parameter, "ordering"),
            metavar="ORDER",
            help="name, createdAt; with - before it downwards",
        )
        listing.add_argument("--limit", type=option(parameters.limit, "limit"), default=parameters.MAX_LIMIT)
        listing.add_argument("--cursor", type=option(place, "cursor"), help="go on where a page ended")

    def _add_for_one(self, actions: Any, name: str, act: Any, help: str) -> argparse.ArgumentParser:
        parser = self.add_action(actions, name, act, help)
        parser.add_argument("job", metavar="JOB", help=JOB)
        return parser

    def _add_for_several(self, actions: Any, name: str, act: Any, help: str) -> argparse.ArgumentParser:
        parser = self.add_action(actions, name, act, help)
        parser.add_argument("job", metavar="JOB", nargs="+", help=JOB)
        return parser

    # --- Looking -----------------------------------------------------------------------------------

    def list_jobs(self, options: Options) -> None:
        limit, order = options["limit"], options["ordering"]
        given = {name: options[name] for name in JobFilter.base_filters if options[name] is not None}
        jobs = narrowed(JobFilter, visible_jobs(self.user(options)), given)
        found = ORDERS.page(jobs, order, options["cursor"], limit + 1)
        page, due = found[:limit], next_runs(found[:limit])
        cursor = str(ORDERS.place_of(page[-1], order)) if len(found) > limit else None
        if self.as_json:
            self.write_json({"results": [job_json(job, due.get(job.id)) for job in page], "next": cursor})
            return
        rows = [
            (
                self.id_text(job),
                f"{job.owner.name}/{job.name}",
                schedule_text(job.schedule),
                self._next(due.get(job.id)),
                _standing(job),
            )
            for job in page
        ]
        styles = [self.style.ERROR if job.problem else None for job in page]
        self.write_table(COLUMNS, rows, styles)
        if cursor:
            self.tell(f"There are more: --cursor={cursor}")

    def show_job(self, options: Options) -> None:
        user = self.user(options)
        job = job_called(options["job"], user)
        next_run, last = next_runs([job]).get(job.id), latest_runs([job]).get(job.id)
        if self.as_json:
            owners = team_names([last]) if last else {}
            run = execution_json(last, owners) if last else None
            self.write_json({**job_json(job, next_run), "latestExecution": run})
            return
        preview = preview_job(job, utcnow(), FIRES_SHOWN)
        self.write_lines(field_lines({**_definition(job), "schedule": preview.description}))
        self.stdout.write("")
        times = {
            "state": _standing(job) or "on its schedule",
            "problem": job.problem,
            "next run": self._next(next_run),
            "next fires": "\n".join(self.time(fire) for fire in preview.fires),
            "warnings": "\n".join(preview.warnings),
            "latest run": last and f"{last.id}  {last.state}  {self.time(last.started_at)}",
            "created": f"{self.time(job.created_at)} by {job.created_by or 'nobody known'}",
            "managed by": job.managed_by,
        }
        self.write_lines(field_lines(times))

    def _next(self, due: datetime | None) -> str:
        late = timedelta(0) if due is None else utcnow() - due
        return f"{self.time(due)} (overdue)" if late > NOT_YET_LATE else self.time(due)

    def id_text(self, job: Job) -> str:
        return str(job.id) if self.width is None else str(job.id)[:SHORT_ID]

    # --- Doing -------------------------------------------------------------------------------------

    def run_job(self, options: Options) -> Exit | None:
        user = self.user(options)
        key = "" if options["key"] is None else read_key(options["key"])
        asked = RunRequest(read_parameters(options["parameter"]), key)
        job = job_called(options["job"], user)
        run = run_job(job, user, utcnow(), asked)
        done = f"a run was made, {run.when}:" if run.made else "made before with this key:"
        if options["follow"]:
            self.tell(f"{_label(job)}: {done} {run.execution_id}")
            well = follow_log(self, find_execution(run.execution_id, user), 1, None)
            return Exit.DONE if well else Exit.REFUSED
        if self.as_json:
            self.write_json({"executionId": str(run.execution_id), "made": run.made})
        else:
            self.stdout.write(f"{_label(job)}: {done} {run.execution_id}")
        return None

    def pause_jobs(self, options: Options) -> None:
        self._change(options, lambda job, user: pause_job(job, user, utcnow()))

    def resume_jobs(self, options: Options) -> None:
        missed = Missed(options["missed"])
        self._change(options, lambda job, user: resume_job(job, user, utcnow(), missed))

    def archive_jobs(self, options: Options) -> None:
        jobs, user = self._jobs(options)
        for job in jobs:
            archive_job(job, user, utcnow())
            if not self.as_json:
                self.stdout.write(f"{_label(job)}: archived")
        if self.as_json:
            self.write_json({"results": [{"id": str(job.id)} for job in jobs]})

    def cancel_jobs(self, options: Options) -> None:
        jobs, user = self._jobs(options)
        done = [(job, cancel_runs(job, user, utcnow(), begun_only=options["running"])) for job in jobs]
        if self.as_json:
            self.write_json({"results": [_cancels_json(job, runs) for job, runs in done]})
            return
        for job, runs in done:
            self.write_lines([f"{_label(job)}: {run.execution_id} {CANCELLING[run.done]}" for run in runs])
            if not runs:
                self.stdout.write(f"{_label(job)}: nothing to cancel")

    def _change(self, options: Options, change: Callable[[Job, Any], Job]) -> None:
        jobs, user = self._jobs(options)
        changed = [change(job, user) for job in jobs]
        due = next_runs(changed)
        if self.as_json:
            self.write_json({"results": [job_json(job, due.get(job.id)) for job in changed]})
            return
        for job in changed:
            self.stdout.write(f"{_label(job)}: {_standing(job) or f'next run {self.time(due.get(job.id))}'}")

    def _jobs(self, options: Options) -> tuple[Sequence[Job], Any]:
        """All of them, found before any is changed."""
        user = self.user(options)
        found = {job.id: job for job in [job_called(text, user) for text in options["job"]]}
        return list(found.values()), user


def _cancels_json(job: Job, runs: Sequence[CancelledRun]) -> dict[str, Any]:
    return {"id": str(job.id), "executions": [cancelled_json(run.execution_id, run.done) for run in runs]}


def _label(job: Job) -> str:
    return f"{job.owner.name}/{job.name}"


def _standing(job: Job) -> str:
    if job.paused_at is not None:
        return "paused"
    return "problem" if job.problem else ""


def _definition(job: Job) -> dict[str, object]:
    """Its fields as REST names them, for people: what is not set is left out."""
    body = job_json(job, None)
    told = ("nextRunAt", "createdAt", "createdBy", "managedBy", "problem", "pausedAt")
    return {name: _field_text(value) for name, value in body.items() if name not in told}


def _field_text(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) and value else value
