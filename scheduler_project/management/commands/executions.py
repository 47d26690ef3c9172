"""``manage.py executions``: what happened, and what is under way."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from access.policy import User, no_team, team_called, teams_seen_by
from executions import services
from executions.api import parameters
from executions.api.presentation import cancelled_json, due_at, execution_json, history_json, row_of, why_json
from executions.api.run_filters import FILTERS, ordering, selection_of
from executions.finding import execution_called
from executions.listing import Selection, events_of, find_execution, listed, team_names
from executions.logs import latest_attempt, read_log
from executions.models import Execution
from executions.pages import NEWEST
from executions.rescheduling import reschedule_execution
from executions.retrying import retry_execution
from executions.states import TERMINAL, State
from executions.timeline import Span, spans
from executions.why import why
from jobs.finding import job_called
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import NotFound
from scheduler_project.operating.command import OperatorCommand, Options, field_lines, option
from scheduler_project.operating.log_output import MAX_TAIL, follow_log
from scheduler_project.operating.tables import Column
from scheduler_project.operating.times import shown_seconds
from scheduler_project.operating.words import CANCELLING, STATE_STYLES

COLUMNS = (
    Column("ID"),
    Column("JOB", shrinks=True),
    Column("STATUS"),
    Column("DUE"),
    Column("TOOK", right=True),
)
SHORT_ID = 23
EXECUTION = "an id, or at least ten digits of its beginning"
LISTED = 20
FILTER_HELP = {
    "status": "one of the six states, or several with commas between them",
    "reason": "why they are as they are, such as failed or timed_out, or several",
    "trigger": "what asked for them: schedule, catchup, manual, backfill, moved, or several",
    "attempt": "only those whose latest attempt is this",
    "from": "only those due then or later",
    "to": "only those due before",
}


class Command(OperatorCommand):
    help = (
        "List and show runs, read their output, cancel, retry and move them. Exit statuses: docs/commands.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        self._add_list(actions)
        self._add_for_one(actions, "show", self.show_execution, "One run: how it stands, and its history.")
        self._add_logs(actions)
        cancel = self.add_action(
            actions, "cancel", self.cancel_executions, "Cancel runs that have not ended."
        )
        cancel.add_argument("execution", metavar="EXECUTION", nargs="+", help=EXECUTION)
        retry = self.add_action(
            actions, "retry", self.retry_executions, "Do the work of runs that have ended once more."
        )
        retry.add_argument("execution", metavar="EXECUTION", nargs="+", help=EXECUTION)
        move = self._add_for_one(actions, "reschedule", self.reschedule, "Move a run that waits.")
        move.add_argument(
            "--at", type=option(parameters.instant, "at"), required=True, help="when it is to be due"
        )

    def _add_list(self, actions: Any) -> None:
        listing = self.add_action(actions, "list", self.list_executions, "Runs, the latest due first.")
        listing.set_defaults(order=NEWEST)
        listing.add_argument("--job", default="", help="only those of this job, by id or name")
        listing.add_argument("--owner", default="", help="only those of this team")
        for name, told in FILTER_HELP.items():
            listing.add_argument(f"--{name}", type=option(FILTERS[name], name), help=told)
        listing.add_argument(
            "--ordering",
            type=option(ordering, "ordering"),
            dest="order",
            metavar="ORDER",
            help="scheduledFor: the earliest due first",
        )
        listing.add_argument(
            "--limit", type=option(parameters.limit, "limit"), default=LISTED, help=f"at most ({LISTED})"
        )
        listing.add_argument(
            "--cursor", type=option(parameters.cursor, "cursor"), help="go on where a page ended"
        )

    def _add_logs(self, actions: Any) -> None:
        logs = self._add_for_one(actions, "logs", self.write_logs, "The output of a run, as it was written.")
        logs.add_argument("-f", "--follow", action="store_true", help="go on until the run has ended")
        logs.add_argument(
            "--attempt", type=option(parameters.whole_number(1, 32767), "attempt"), help="not the latest one"
        )
        logs.add_argument("--timestamps", action="store_true", help="before each line its time and stream")
        logs.add_argument(
            "--tail",
            type=option(parameters.whole_number(0, MAX_TAIL), "tail"),
            help="only so many last lines",
        )

    def _add_for_one(self, actions: Any, name: str, act: Any, help: str) -> argparse.ArgumentParser:
        parser = self.add_action(actions, name, act, help)
        parser.add_argument("execution", metavar="EXECUTION", help=EXECUTION)
        return parser

    # --- Looking -----------------------------------------------------------------------------------

    def list_executions(self, options: Options) -> None:
        limit = options["limit"]
        selection = self._selection(options)
        page = listed(selection, after=options["cursor"], limit=limit, order=options["order"])
        owners = team_names(page.rows)
        cursor = None if page.then is None else parameters.cursor_text(page.then)
        if self.as_json:
            self.write_json({"results": [execution_json(run, owners) for run in page.rows], "next": cursor})
            return
        styles = [self._style(run) for run in page.rows]
        self.write_table(COLUMNS, [self._row(run, owners) for run in page.rows], styles)
        if cursor:
            told = "" if page.looked_until is None else f" (looked until {self.time(page.looked_until)})"
            self.tell(f"There are more{told}: --cursor={cursor}")

    def _selection(self, options: Options) -> Selection:
        user = self.user(options)
        job_id = job_called(options["job"], user).id if options["job"] else None
        return selection_of(options, _teams(options["owner"], user), job_id)

    def _row(self, run: Execution, owners: dict[int, str]) -> tuple[str, ...]:
        identity = str(run.id) if self.width is None else str(run.id)[:SHORT_ID]
        owner = owners.get(run.owner_id, run.spec.body["owner"])
        due = due_at(run) or run.scheduled_for
        took = shown_seconds(_length(run))
        return identity, f"{owner}/{run.spec.body['job_name']}", run.state, self.time(due), took

    def _style(self, run: Execution) -> Any:
        name = STATE_STYLES.get(State(run.state))
        return getattr(self.style, name) if name else None

    def show_execution(self, options: Options) -> None:
        run = execution_called(options["execution"], self.user(options))
        owners, events = team_names([run]), events_of(run)
        causes = why(run, utcnow())
        if self.as_json:
            history = history_json(run, events, utcnow())
            self.write_json({**execution_json(run, owners), **history, "why": why_json(run, causes)})
            return
        told = execution_json(run, owners)
        for name in ("scheduledFor", "movedTo", "dueAt", "queuedAt", "startedAt", "finishedAt"):
            told[name] = self._time_in(told[name])
        told["cancelRequestedAt"] = self._time_in(told["cancelRequestedAt"])
        sentences = [text for cause in causes for text in (cause.sentence, cause.advice) if text]
        self.write_lines(field_lines({**told, "why": "\n".join(sentences)}))
        self.stdout.write("")
        self._write_spans(spans(row_of(run), events))

    def _time_in(self, text: str | None) -> str | None:
        return text and self.time(datetime.fromisoformat(text))

    def _write_spans(self, found: list[Span]) -> None:
        columns = (
            Column("ATTEMPT", right=True),
            Column("STATUS"),
            Column("SINCE"),
            Column("FOR", right=True),
        )
        now = utcnow()
        rows = [(span.attempt, span.state, self.time(span.since), _span_length(span, now)) for span in found]
        self.write_table(columns, rows)

    def write_logs(self, options: Options) -> None:
        run = execution_called(options["execution"], self.user(options))
        if options["follow"]:
            follow_log(self, run, options["attempt"], options["tail"])
            return
        attempt = options["attempt"] or latest_attempt(run)
        pieces = read_log(run, attempt, timestamps=options["timestamps"], tail=options["tail"])
        if self.as_json:
            text = b"".join(pieces).decode(errors="replace")
            self.write_json({"id": str(run.id), "attempt": attempt, "text": text})
            return
        for piece in pieces:
            self.write_output(piece)

    # --- Doing -------------------------------------------------------------------------------------

    def cancel_executions(self, options: Options) -> None:
        user = self.user(options)
        runs = [execution_called(text, user) for text in options["execution"]]
        done = [(run.id, services.cancel_execution(run.id, user, utcnow())) for run in runs]
        if self.as_json:
            self.write_json({"results": [cancelled_json(*each) for each in done]})
        else:
            self.write_lines([f"{identity} {CANCELLING[how]}" for identity, how in done])

    def retry_executions(self, options: Options) -> None:
        user = self.user(options)
        runs = [execution_called(text, user) for text in options["execution"]]
        made = [(retry_execution(run, user, utcnow()), run.id) for run in runs]
        if self.as_json:
            results = [{"executionId": str(new), "retryOf": str(old)} for new, old in made]
            self.write_json({"results": results})
        else:
            self.write_lines([f"{new} is a retry of {old}" for new, old in made])

    def reschedule(self, options: Options) -> None:
        user = self.user(options)
        run = execution_called(options["execution"], user)
        due = reschedule_execution(run.id, options["at"], user, utcnow())
        if self.as_json:
            moved = find_execution(run.id, user)
            self.write_json(execution_json(moved, team_names([moved])))
        else:
            self.stdout.write(f"{run.id} is due at {self.time(due)}")


def _teams(owner: str, user: User) -> frozenset[int] | None:
    """The teams whose runs are asked for and may be seen. NotFound for a team that ``user`` does not see."""
    if not owner:
        return teams_seen_by(user)
    team = team_called(owner, user)
    if team is None:
        raise NotFound(no_team(owner))
    return frozenset({team.id})


def _length(run: Execution) -> float | None:
    """Seconds that the latest attempt took, or has taken so far."""
    if run.started_at is None:
        return None
    return ((run.finished_at or utcnow()) - run.started_at).total_seconds()


def _span_length(span: Span, now: datetime) -> str:
    return "" if span.state in TERMINAL else shown_seconds(span.length(now).total_seconds())
