"""A job that lives through a moved clock: its runs begin, end, get leave and are stopped when they would.

The rows, the services, the recorder's functions and what the beats call are the real ones; only who runs
the commands, and the clock, are the test's. Between ``fall_behind`` and ``hear`` workers claim what is due,
and the recorder hears of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from access.policy import System
from executions.claims import Claimed, Claims
from executions.holding import due_when_released, is_held
from executions.models import Execution
from executions.rescheduling import reschedule_execution
from executions.services import cancel_execution
from executions.store import default_store
from executions.transitions import record
from jobs import services
from jobs.catchups import start_catch_ups
from jobs.definitions import definition_body, read_definition
from jobs.models import Job, Missed
from jobs.occurrences import missing_occurrences
from jobs.outages import MissedRun, settle_missed
from jobs.parking import relieve_parked
from tests.integration.jobs.chain import new_job
from tests.integration.making import CANCELLED, COMPLETED, STARTED, entry_for, said

SECOND = timedelta(seconds=1)
MISFIRE_GRACE = timedelta(minutes=1)
LEASE = timedelta(hours=1)  # longer than any test: the claims are of the real time
ASKED = Q(trigger__in=["schedule", "catchup", "moved"])


class Life:
    """``length``: of each run; ``now``: the clock; ``unheard``: runs, and when they began."""

    def __init__(self, schedule: Any, now: datetime, length: timedelta = SECOND, **fields: Any) -> None:
        self.now, self.length = now, length
        self.behind, self.unheard = False, dict[UUID, datetime]()
        self.job = new_job(schedule, now, **fields)
        self.schedules: list[tuple[datetime, Any]] = [(now, self.job.schedule)]

    # --- what people do -----------------------------------------------------------------------

    def edit(self, **fields: Any) -> None:
        job = Job.objects.select_related("owner", "task").get(id=self.job.id)
        body = {**definition_body(job), **fields}
        edited = services.update_job(job, read_definition(body), _root(), self.now)
        if edited.schedule != self.schedules[-1][1]:
            self.schedules.append((self.now, edited.schedule))

    def pause(self) -> None:
        services.pause_job(Job.objects.get(id=self.job.id), _root(), self.now)

    def resume(self, missed: Missed = Missed.SKIP) -> None:
        services.resume_job(Job.objects.get(id=self.job.id), _root(), self.now, missed)

    def cancel(self, run: Execution) -> None:
        cancel_execution(run.id, System("mia"), self.now)

    def move(self, run: Execution, by: timedelta) -> None:
        reschedule_execution(run.id, self.now + by, System("mia"), self.now)

    # --- the recorder ---------------------------------------------------------------------------

    def fall_behind(self) -> None:
        self.behind = True

    def hear(self) -> None:
        """The recorder hears of all that has begun meanwhile, and of what has ended by now."""
        self.behind = False
        unheard, self.unheard = self.unheard, {}
        for run, begun in unheard.items():
            events = [said(STARTED, run, at=begun)]
            if (end := begun + self.length) <= self.now:
                events.append(said(COMPLETED, run, at=end, started_at=begun, exit_code=0))
            with transaction.atomic():
                record(events, self.now)
        self._happen()

    def _begin_unheard(self, run: Execution) -> None:
        claims = Claims(default_store(), "worker", LEASE)
        assert claims.claim(run.id, run.attempt, generation=run.generation) is Claimed.WON
        self.unheard[run.id] = self.now

    # --- what is there --------------------------------------------------------------------------

    @property
    def rows(self) -> list[Execution]:
        return list(Execution.objects.filter(ASKED, job_id=self.job.id).order_by("scheduled_for", "id"))

    @property
    def next(self) -> Execution | None:
        """The next run of the schedule that waits, or is paused."""
        live = Execution.objects.filter(job_id=self.job.id, trigger="schedule", finished_at=None)
        live = live.exclude(id__in=self.unheard)
        return live.filter(state__in=["Waiting", "Paused"]).order_by("scheduled_for").first()

    @property
    def ran(self) -> list[datetime]:
        return [row.scheduled_for for row in self.rows if row.first_started_at is not None]

    def skipped(self) -> list[tuple[str, int]]:
        return [(row.reason, row.missed) for row in self.rows if row.missed]

    def goes_on(self) -> bool:
        """Whether a run waits, or one is under way at whose end the next is made; and the planner agrees."""
        job = Job.objects.get(id=self.job.id)
        mended = [row for row in missing_occurrences([job.shard], self.now) if row.job_id == job.id]
        live = Execution.objects.filter(job_id=job.id, finished_at=None)
        chain = live.filter(trigger="schedule", state="Waiting")
        if job.overlap in ("forbid", "queue"):
            chain |= live.filter(trigger="schedule", state="Active")
        if job.overlap == "queue":
            chain |= live.filter(trigger="catchup")
        return not mended and chain.exists()

    def outage(self, span: timedelta) -> None:
        """Nothing is looked at for so long; then two beats, which read it at once, settle what was missed."""
        self.now += span
        late = Execution.objects.filter(
            job_id=self.job.id, state="Waiting", trigger="schedule", attempt=1, queued_at=None
        ).filter(check_at__lt=self.now - MISFIRE_GRACE)
        late = late.exclude(id__in=self.unheard)
        missed = [
            MissedRun(entry_for(run.id, run.scheduled_for), run.job_id, run.scheduled_for) for run in late
        ]
        for _beat in range(2):
            settle_missed(missed, self.now)

    # --- time --------------------------------------------------------------------------------------

    def live(self, span: timedelta) -> None:
        """Let time pass; everything happens when it is due."""
        until = self.now + span
        self._happen()
        while (at := min(self._moments(), default=until)) < until:
            self.now = max(at, self.now)
            self._happen()
        self.now = until
        self._happen()

    def _moments(self) -> Iterator[datetime]:
        for run in self._live():
            if run.state == "Active":
                yield (run.started_at or self.now) + self.length
            elif run.state == "Waiting" and run.check_at is not None:
                again = self.now + 2 * SECOND if is_held(run.check_at) else self.now
                yield max(due_when_released(run.check_at), again)

    def _live(self) -> list[Execution]:
        live = Execution.objects.filter(job_id=self.job.id, finished_at=None)
        return list(live.exclude(id__in=self.unheard).order_by("id"))

    def _happen(self) -> None:
        while self._end_and_begin():
            pass

    def _end_and_begin(self) -> bool:
        shards = [self.job.shard]
        relieve_parked(shards, self.now)
        start_catch_ups(shards, 10, self.now)
        events = []
        for run in self._live():
            if run.state == "Active" and run.cancel_requested_at is not None:
                events.append(said(CANCELLED, run.id, at=self.now))
            elif run.state == "Active" and (run.started_at or self.now) + self.length <= self.now:
                events.append(said(COMPLETED, run.id, at=self.now, started_at=run.started_at, exit_code=0))
            elif run.state != "Waiting" or run.check_at is None or run.check_at > self.now:
                continue
            elif self.behind:
                self._begin_unheard(run)
            else:
                events.append(said(STARTED, run.id, at=self.now))
        with transaction.atomic():
            for event in events:
                record([event], self.now)
        return bool(events)


def _root() -> User:
    return User.objects.get(username="root")
