"""What becomes of a job's runs when its row has changed; in one transaction, all of them locked.

deleted       whatever waits is cancelled
paused        whatever waits is Paused, and no occurrence is planned
schedule      it counts from now on (jobs/borders.py): occurrences that it does not plan any more are
              cancelled (``rescheduled``), and the first one is made that is not spent (jobs/spent.py); what
              is due already runs, and what somebody moved runs when it was moved to
jitter        what waits for its time is due as that says, at once where it has passed
anything      what waits gets the job's new snapshot; a run with parameters of its own keeps those
resumed       what is Paused waits again; of the times missed meanwhile, by ``on_resume``

A run that has begun is left alone. Where nobody has recorded that yet, what follows it is made by whoever
records it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from executions.entries import Entry
from executions.events import Event
from executions.holding import held, is_held
from executions.models import RunSpec
from executions.redirection import LiveRun, Redirection, redirect
from executions.runspecs import Spec
from executions.states import EventType, State, Trigger
from executions.transitions import insert, record
from jobs.borders import RESCHEDULED, draw_border
from jobs.models import Job
from jobs.occurrences import (
    due_time,
    first_unspent,
    occurrence,
    past_spent,
)
from jobs.outages import chosen, resume_chain
from jobs.overlaps import SKIPPED_OVERLAP
from jobs.parking import parks_next
from jobs.resuming import due_by_plan, is_occurrence, resume
from jobs.schedules import Now, Schedule
from jobs.snapshots import check_row, overridden, spec_of, store_spec
from jobs.spent import carries_chain, last_planned
from jobs.stored_schedules import planning_schedule, schedule_of
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

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
    snapshots: dict[UUID, UUID] = field(default_factory=dict)

    def replans(self, run: LiveRun, now: datetime) -> bool:
        """Whether ``run`` is an occurrence to come that another schedule has planned."""
        return self.replanned and is_occurrence(run) and run.scheduled_for > now

    def respreads(self, run: LiveRun, now: datetime) -> bool:
        """Whether ``run`` is an occurrence that is due later, by a jitter or schedule that is no more."""
        return self.anew and is_occurrence(run) and run.check_at is not None and run.check_at > now

    def snapshot_for(self, run: LiveRun) -> UUID:
        """The snapshot that ``run`` is to have, if it waits."""
        if self.spec_before == self.job.spec_id:
            return run.spec_id
        if run.spec_id not in self.snapshots:
            self.snapshots[run.spec_id] = _renewed(run.spec_id, self.job)
        return self.snapshots[run.spec_id]


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
    return run.waits and (stopped or aim.anew or aim.snapshot_for(run) != run.spec_id)


def _renewed(spec_id: UUID, job: Job) -> UUID:
    """The job's snapshot, with the parameters of one run alone; its old one where they do not fit."""
    own = RunSpec.objects.values_list("body", flat=True).get(id=spec_id).get("overrides")
    try:
        return store_spec(overridden(Spec.from_json(job.spec.body), own)).id if own else job.spec_id
    except InvalidValue as error:
        logger.warning("overrides_do_not_fit", extra={"job": job.id, "error": error.message})
        return spec_id


def align(
    aim: Wanted, runs: Sequence[LiveRun], now: datetime, *, begun: Collection[UUID] = frozenset()
) -> list[Entry]:
    """Carry it out; the entries of what waits now. ``begun``: runs that wait by their row, but that a worker
    has claimed."""
    carried = any(run.id in begun and _is_followed_when_recorded(run) for run in runs)
    runs = [replace(run, state=State.ACTIVE) if run.id in begun else run for run in runs]
    pending = [run for run in runs if run.state is not State.ACTIVE]
    if aim.job.archived_at is not None:
        _end(pending, DELETED, "the job was deleted", now)
        return []
    due = None
    if aim.replanned:
        draw_border(aim.job, aim.spec_before, runs, now)
        due = first_unspent(aim.job, aim.schedule.first_fire(now))
    gone = [run for run in pending if aim.replans(run, now) and run.scheduled_for != due]
    _end(gone, RESCHEDULED, "the schedule was changed", now)
    kept = [run for run in runs if run not in gone]
    entries = redirect([(run, _new_course(aim, run, now)) for run in kept if run in pending])
    if aim.job.paused_at is not None:
        _pause([run for run in kept if run.waits], now)
        return []
    if aim.problem:
        return []
    parked = any(parks_next(aim.job, run) for run in kept)
    resumed = resume(aim.job, [run for run in kept if run.state is State.PAUSED], now, parked=parked)
    kept = [run for run in kept if run not in resumed.over]
    waiting = {run.id for run in kept if run.waits}
    entries = [*[entry for entry in entries if entry.execution_id in waiting], *resumed.entries]
    carried = carried or any(carries_chain(run.trigger, run.state, aim.job.overlap) for run in kept)
    if resumed.settled or carried:
        return entries
    if aim.replanned:
        parked = parked or any(run.check_at is not None and is_held(run.check_at) for run in gone)
        return [*entries, *_plan(aim.job, due, now, parked=parked)]
    return [*entries, *_continue(aim, kept, now, parked=parked)]


def _is_followed_when_recorded(run: LiveRun) -> bool:
    """Whether the recorder, once it hears that ``run`` has begun, makes the next occurrence, or leaves it to
    the run's end: it has not heard of the run before."""
    return run.waits and is_occurrence(run) and run.queued_at is None


def _new_course(aim: Wanted, run: LiveRun, now: datetime) -> Redirection:
    due = run.check_at or now
    if run.queued_at is not None:
        due = now
    elif aim.respreads(run, now):
        planned = due_by_plan(aim.job, run)
        due = held(planned) if is_held(due) else max(now, planned)  # what waits for another run waits on
    return Redirection(spec_id=aim.snapshot_for(run), check_at=due, owner_id=aim.job.owner_id)


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


def _plan(job: Job, due: datetime | None, now: datetime, *, parked: bool) -> list[Entry]:
    """The first occurrence of a new schedule; ``parked``: held for a run, as the one was before it."""
    if due is None:
        return []
    new = occurrence(job, due)
    new = replace(new, check_at=held(due_time(job, due))) if parked else new
    if not schedule_of(job).recurring:
        return insert([new])
    return insert(past_spent({job.id: job}, [new], now))


def _continue(aim: Wanted, kept: Sequence[LiveRun], now: datetime, *, parked: bool) -> list[Entry]:
    """Of what was planned since the last run: it ended while the job was paused, or is under way and made the
    next at its end by the overlap rule of before."""
    if not aim.schedule.recurring:
        return []
    terms = chosen(aim.job, parked=parked)
    if any(run.trigger is Trigger.SCHEDULE for run in kept):
        terms = replace(terms, reason=SKIPPED_OVERLAP)
    return resume_chain(aim.job, last_planned(aim.job, planning_schedule(aim.job)), now, terms)
