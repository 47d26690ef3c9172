"""The process that tells people: who may log in where, then one line for every state change."""

from __future__ import annotations

import logging
import sys
import threading
from datetime import datetime, timedelta

from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic, utcnow
from scheduler_project.kernel.loop import stop_on_signals
from scheduler_project.kernel.texts import escaped
from scheduler_project.standalone import demo, once
from scheduler_project.standalone.changes import Change, Changes
from scheduler_project.standalone.options import ONCE_LIMIT_S, Options
from scheduler_project.startup import set_up_django

logger = logging.getLogger(__name__)
PAUSE_S = 0.3
REFUSED = 3  # the demo could not be made, or is not done in time; anything else but 0 is a fault
SHARE = 10  # of the time, at most one part in ten is spent reading


def report(options: Options, begun: datetime) -> int:
    """Until it is stopped, or, with ``once``, until the demo's verdict; the exit code."""
    set_up_django()
    stop = threading.Event()
    stop_on_signals(stop)
    reporter = Reporter(options, begun)
    try:
        reporter.introduce()
    except demo.DemoFailed as failure:
        _say(failure.message)
        return REFUSED
    return reporter.watch(stop)


class Reporter:
    def __init__(self, options: Options, begun: datetime) -> None:
        self._options = options
        self._begun = begun
        self._changes = Changes(begun)
        self._expected = demo.expected_ends(options) if options.demo else {}

    def introduce(self) -> None:
        if self._options.demo:
            account = demo.ensure_account(self._options)
            _say(f"admin  {account.url}/admin/   user {account.username}   password {account.password}")
            _say(f"API    {account.url}/api/v1/   Authorization: Token {account.token}")
            _say(f"       both are kept in {self._options.folder / demo.FILE}")
            for line in demo.post_jobs(self._options, account, self._begun):
                _say(line)
            return
        _say(f"admin  {self._options.url}/admin/")
        if not _has_superuser():
            _say("       make an account on another terminal: python manage.py createsuperuser")

    def watch(self, stop: threading.Event) -> int:
        from django.db import DatabaseError, close_old_connections

        delays = exponential()
        while not stop.is_set():
            begun = monotonic()
            try:
                code = self._look()
                delays = exponential()
                delay = max(PAUSE_S, SHARE * (monotonic() - begun))
            except DatabaseError as error:
                close_old_connections()
                code, delay = None, next(delays)
                logger.warning("changes_unreadable", extra={"error": str(error).strip(), "delay_s": delay})
            if code is not None:
                return code
            stop.wait(delay)
        return 0

    def _look(self) -> int | None:
        for change in self._changes.new():
            _say(change_line(change))
        return self._verdict() if self._options.once else None

    def _verdict(self) -> int | None:
        runs = demo_runs(self._begun, set(self._expected))
        shown = once.shown_runs(runs, self._expected)
        if len(shown) == len(self._expected):
            _say("")
            for line in once.table(list(shown.values())):
                _say(line)
            return 0
        if utcnow() - self._begun < timedelta(seconds=ONCE_LIMIT_S):
            return None
        missing = once.missing_text(runs, self._expected)
        _say(f"the demo is not done {ONCE_LIMIT_S:.0f} s after its start: {missing}")
        return REFUSED


def demo_runs(begun: datetime, jobs: set[str]) -> list[once.DemoRun]:
    """The runs of ``jobs`` that are due since ``begun``. Needs Django to be set up."""
    from django.db.models import Min

    from executions.ids import lowest_id
    from executions.models import Execution, ExecutionEvent
    from scheduler_project.standalone.changes import job_name

    lowest = lowest_id(begun)
    rows = Execution.objects.filter(id__gte=lowest, scheduled_for__gte=begun, created_at__gte=begun)
    starts = dict(
        ExecutionEvent.objects.filter(execution_id__gte=lowest, type="JOB_STARTED")
        .values_list("execution_id")
        .annotate(first=Min("at"))
    )
    return [
        once.DemoRun(
            job=job_name(row.spec.body),
            state=row.state,
            attempts=row.attempt,
            due=row.scheduled_for,
            started_at=starts.get(row.id, row.started_at),
            finished_at=row.finished_at,
            exit_code=row.exit_code,
            reason=row.reason,
        )
        for row in rows.select_related("spec")
        if job_name(row.spec.body) in jobs
    ]


def change_line(change: Change) -> str:
    """``04:00:01.250Z  daily-sales-etl       Active              attempt 1  …``

    Names and messages are others' texts: what a terminal would obey is written out.
    """
    at = f"{change.at:%H:%M:%S}.{change.at.microsecond // 1000:03d}Z"
    return escaped(f"{at}  {change.job:<20}  {change.state:<20}  {change.detail}").rstrip()


def _has_superuser() -> bool:
    from django.contrib.auth import get_user_model

    return bool(get_user_model().objects.filter(is_superuser=True).exists())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
