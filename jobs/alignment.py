"""What becomes of a job's runs when its row has changed; in one transaction, all of them locked.

deleted       whatever waits is cancelled
paused        whatever waits is Paused, and no occurrence is planned
schedule      it counts from now on (jobs/borders.py): occurrences that it does not plan any more are
              cancelled (``rescheduled``), and the next one is made; what is due already runs, and what
              somebody moved runs when it was moved to
anything      what waits and had the job's snapshot gets the new one; what has one of its own (a run with
              overrides, the retry of a run that began before an earlier change) keeps it
resumed       what is Paused waits again; of the times missed meanwhile, by ``on_resume``

A run that has begun is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection

from executions.entries import Entry
from executions.events import Event
from executions.holding import held, is_held
from executions.ids import execution_id
from executions.planning import NewExecution
from executions.redirection import LiveRun, Redirection, redirect
from executions.states import EventType, State, Trigger
from executions.transitions import insert, record
from jobs.borders import RESCHEDULED, draw_border
from jobs.models import Job, Overlap
from jobs.occurrences import due_time, occurrence, schedule_of, unspent
from jobs.outages import chosen, resume_chain
from jobs.parking import parks_next
from jobs.queries import JOBS
from jobs.resuming import due_by_plan, is_occurrence, resume
from jobs.schedules import Now, Schedule
from jobs.snapshots import check_row, spec_of, store_spec
from scheduler_project.kernel.errors import InvalidValue

DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job's row asks for. ``anew``: its times are others than its runs were planned by;
    ``replanned``: because of the schedule itself, and not of its jitter alone.

    ``spec_before``: the snapshot of what was last settled; ``job`` has the new one already. ``problem``:
    why the row cannot be read; its runs can be stopped, and else stay as they are until it is mended.
    """

    job: Job
    schedule: Schedule
    spec_before: UUID
    anew: bool = False
    replanned: bool = False
    problem: str = ""

    def next_due(self, now: datetime) -> datetime | None:
        """The planned time of the occurrence that follows now; of a new schedule, its first."""
        return self.schedule.first_fire(now) if self.replanned else self.schedule.next_fire(now)

    def moves(self, run: LiveRun, now: datetime) -> bool:
        """Whether ``run`` is an occurrence to come that was planned by other times."""
        return self.anew and is_occurrence(run) and run.scheduled_for > now

    def replaces(self, run: LiveRun) -> bool:
        """Whether ``run`` has the job's snapshot of before, and is to have the new one."""
        return run.spec_id == self.spec_before != self.job.spec_id


def wanted(job: Job, now: datetime) -> Wanted:
    """What the row of ``job`` asks for; its schedule gets its normal form."""
    try:
        check_row(job)
    except InvalidValue as error:
        return Wanted(job, Now(), job.spec_id, problem=error.message)
    spec_before, before = job.spec_id, job.spec.body
    job.schedule = schedule_of(job).anchored(now).to_json()
    spec = spec_of(job)
    replanned = before["schedule"] != job.schedule
    anew = replanned or before.get("jitter_s", 0.0) != spec.jitter_s
    job.spec = store_spec(spec)
    return Wanted(job, schedule_of(job), spec_before, anew, replanned)


def concerned(aim: Wanted, run: LiveRun) -> bool:
    """Whether what waits of ``run`` must not start as it was sent."""
    stopped = aim.job.archived_at is not None or aim.job.paused_at is not None
    return run.waits and (stopped or aim.replaces(run) or aim.anew)


def as_begun(run: LiveRun) -> LiveRun:
    """A run that a worker has claimed, although nobody has recorded that yet."""
    return replace(run, state=State.ACTIVE)


def align(aim: Wanted, runs: Sequence[LiveRun], now: datetime) -> list[Entry]:
    """Carry it out; the entries of what waits now."""
    pending = [run for run in runs if run.state is not State.ACTIVE]
    if aim.job.archived_at is not None:
        _end(pending, DELETED, "the job was deleted", now)
        return []
    if aim.replanned:
        draw_border(aim.job, aim.spec_before, runs, now)
    due = aim.next_due(now)
    moved = [run for run in pending if aim.moves(run, now) and run.scheduled_for != due]
    _end(moved, RESCHEDULED, "the schedule was changed", now)
    kept = [run for run in runs if run not in moved]
    entries = redirect([(run, _new_course(aim, run, now)) for run in kept if run in pending])
    if aim.job.paused_at is not None:
        _pause([run for run in kept if run.waits], now)
        return []
    if aim.problem:
        return []
    parked = any(parks_next(aim.job, run) for run in kept)
    resumed, settled = resume(aim.job, [run for run in kept if run.state is State.PAUSED], now, parked=parked)
    kept = [run for run in kept if run not in settled]
    waiting = {run.id for run in kept if run.waits}
    entries = [*[entry for entry in entries if entry.execution_id in waiting], *resumed]
    if any(_keeps_chain(aim.job, run) for run in kept):
        return entries
    if not settled and not aim.anew and aim.schedule.recurring:
        return [*entries, *_continue(aim.job, now, parked=parked)]
    parked = parked or any(run.check_at is not None and is_held(run.check_at) for run in moved)
    return [*entries, *_plan(aim, due, parked=parked)]


def _new_course(aim: Wanted, run: LiveRun, now: datetime) -> Redirection:
    due = run.check_at or now
    if run.queued_at is not None:
        due = now
    elif aim.moves(run, now):
        planned = due_by_plan(aim.job, run)
        due = held(planned) if is_held(due) else planned  # what waits for another run waits on
    return Redirection(
        spec_id=aim.job.spec_id if aim.replaces(run) else run.spec_id, check_at=due, owner_id=aim.job.owner_id
    )


# --- ending, pausing ---------------------------------------------------------------------------


def _end(runs: Sequence[LiveRun], reason: str, message: str, now: datetime) -> None:
    _record(EventType.CANCELLED, runs, now, reason=reason, message=message)


def _pause(runs: Sequence[LiveRun], now: datetime) -> None:
    _record(EventType.PAUSED, runs, now, reason="paused", message="the job is paused")


def _record(kind: EventType, runs: Sequence[LiveRun], now: datetime, *, reason: str, message: str) -> None:
    events = [
        Event(type=kind, execution_id=run.id, attempt=run.attempt, at=now, reason=reason, message=message)
        for run in runs
    ]
    record(events, now, keep=True, follow=False)


# --- what comes next ------------------------------------------------------------------------------


def _plan(aim: Wanted, due: datetime | None, *, parked: bool) -> list[Entry]:
    """The next occurrence; ``parked``: held for a run, as the one was that it takes the place of."""
    due = None if due is None else unspent(aim.job, due, Trigger.MOVED)
    if due is None:
        return []
    new = _next_of(aim.job, due, parked=parked)
    made = insert([new])
    if made or not aim.replanned:
        return made
    # It was planned before, and ended when the schedule was changed: this one is another run.
    key = f"revision {aim.job.revision}"
    return insert([replace(new, id=execution_id(aim.job.id, due, Trigger.SCHEDULE, aim.job.shard, key))])


def _next_of(job: Job, due: datetime, *, parked: bool) -> NewExecution:
    new = occurrence(job, due)
    return replace(new, check_at=held(due_time(job, due))) if parked else new


def _continue(job: Job, now: datetime, *, parked: bool) -> list[Entry]:
    """Of what was planned since the last run, which ended while the job was paused."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS["last_planned"], [job.id, now])
        last_planned = cursor.fetchone()[0]
    return resume_chain(job, last_planned or now, now, chosen(job, parked=parked))


def _keeps_chain(job: Job, run: LiveRun) -> bool:
    """Whether the next occurrence is ``run``, or is made when it ends."""
    scheduled = run.trigger is Trigger.SCHEDULE
    return scheduled and (run.state is not State.ACTIVE or job.overlap in {Overlap.FORBID, Overlap.QUEUE})
