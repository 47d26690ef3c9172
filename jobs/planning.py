"""The planner of jobs: what follows the runs that begin and end (the port: executions/planning.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import F

from executions.holding import held, is_held
from executions.planning import BegunRun, EndedRun, NewExecution, Progress
from executions.states import State, Trigger
from jobs.listing import jobs_to_plan, kept_jobs
from jobs.models import Job
from jobs.occurrences import followed, past_spent
from jobs.overlaps import (
    FOLLOW_AT_THE_BEGINNING,
    FORBID,
    QUEUE,
    REPLACE,
    following_beginning,
    following_catch_up,
    following_end,
)
from jobs.parking import release_parked
from jobs.queries import JOBS

CHAIN = (Trigger.SCHEDULE, Trigger.CATCH_UP)


def plan(progress: Progress, now: datetime) -> list[NewExecution]:
    """The next occurrences, the skipped blocks and the next of the missed fires that are caught up with."""
    _call_back(progress.retried)
    ended = [run for run in (*progress.ended, *progress.moved) if run.trigger in CHAIN]
    begun = [run for run in progress.begun if run.trigger is Trigger.SCHEDULE]
    beside = _followed_at_the_beginning({run.job_id for run in begun})
    concerned = beside | {run.job_id for run in ended}
    kept = kept_jobs(concerned) if concerned else {}
    jobs = jobs_to_plan(kept)
    over = {run.id for run in ended}
    new = [
        row
        for run in begun
        if run.job_id in beside and run.job_id in kept
        for row in _kept_back(kept[run.job_id], _after_beginning(kept[run.job_id], run, run.id in over, now))
    ]
    last = _last_of_chains(jobs, ended)
    new += [
        _in_place_of(run, row)
        for run in ended
        if run.job_id in jobs
        for row in _after_end(jobs[run.job_id], run, last.get(run.id), now)
    ]
    new += [
        row
        for run in ended
        if run.job_id in kept and run.job_id not in jobs and run.trigger is Trigger.CATCH_UP
        for row in _kept_back(kept[run.job_id], _after_end(kept[run.job_id], run, None, now))
    ]
    return past_spent(kept, new, now) + release_parked(_waited_for(jobs, ended), now)


def _call_back(job_ids: Collection[UUID]) -> None:
    """A job that was paused or deleted while its run was under way is settled again: the retry is to wait."""
    if job_ids:
        stopped = Job.objects.exclude(paused_at=None, archived_at=None).filter(id__in=job_ids)
        stopped.update(revision=F("revision") + 1)


def _followed_at_the_beginning(job_ids: Collection[UUID]) -> set[UUID]:
    if not job_ids:
        return set()
    jobs = Job.objects.filter(id__in=job_ids, overlap__in=FOLLOW_AT_THE_BEGINNING)
    return set(jobs.values_list("id", flat=True))


def _after_beginning(job: Job, run: BegunRun, over: bool, now: datetime) -> list[NewExecution]:
    return followed(
        job, lambda rules: following_beginning(rules, run.scheduled_for, run.begun_at, ended=over), now
    )


def _after_end(job: Job, run: EndedRun, reached: datetime | None, now: datetime) -> list[NewExecution]:
    """``reached``: the chain of the job goes on from this end, after this planned time; None: it does not."""
    if run.trigger is Trigger.CATCH_UP:
        until = run.catch_up_until or run.scheduled_for
        return followed(
            job,
            lambda rules: following_catch_up(
                rules if reached else replace(rules, overlap=FORBID),
                run.scheduled_for,
                until,
                run.finished_at,
                reached=reached,
            ),
            now,
        )
    if job.overlap in FOLLOW_AT_THE_BEGINNING:  # made already, unless it never began
        return [] if run.begun else _after_beginning(job, _as_begun(run), True, now)
    if reached is None:
        return []
    return followed(job, lambda rules: following_end(rules, reached, run.started_at, run.finished_at), now)


def _in_place_of(run: EndedRun, row: NewExecution) -> NewExecution:
    """What takes the place of an occurrence that was held for another run is held for it as well."""
    due = row.check_at
    if run.trigger is not Trigger.SCHEDULE or not run.held or due is None or is_held(due):
        return row
    return replace(row, check_at=held(due))


def _last_of_chains(jobs: Mapping[UUID, Job], ended: Iterable[EndedRun]) -> dict[UUID, datetime]:
    """The ends that a next is made for: of each job one, and only where no other run of its chain lives;
    with the planned time that the next comes after.

    A job that has had ``allow`` or ``replace`` may have several runs under way: each of them making a next
    would be a chain of its own, for ever.
    """
    chains: dict[UUID, list[EndedRun]] = {}
    for run in ended:
        if run.job_id in jobs and _carries_chain(jobs[run.job_id], run):
            chains.setdefault(run.job_id, []).append(run)
    alive = _alive(list(chains))
    planned = _latest_planned([job_id for job_id in chains if jobs[job_id].overlap == QUEUE])
    return dict(_last(runs, planned.get(job_id)) for job_id, runs in chains.items() if job_id not in alive)


def _carries_chain(job: Job, run: EndedRun) -> bool:
    """Whether the next is made when ``run`` ends."""
    return job.overlap == QUEUE or (job.overlap == FORBID and run.trigger is Trigger.SCHEDULE)


def _last(runs: Collection[EndedRun], planned: datetime | None) -> tuple[UUID, datetime]:
    """The run that ended last, and the latest planned time: of them all, or what is ``planned`` besides."""
    run = max(runs, key=lambda one: (one.finished_at, one.scheduled_for))
    known = [one.scheduled_for for one in runs if one.trigger is Trigger.SCHEDULE]
    return run.id, max([*known, planned or run.scheduled_for])


def _latest_planned(job_ids: list[UUID]) -> dict[UUID, datetime]:
    """Of a queue each fire runs once: where its next is looked for, none may be planned already."""
    if not job_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(JOBS["latest_of_chains"], [job_ids])
        return dict(cursor.fetchall())


def _alive(job_ids: list[UUID]) -> set[UUID]:
    """The jobs of whose chain a run lives. Of two that end at once, one must see the end of the other."""
    found = _chains_alive(job_ids)
    if not found:
        return found
    with connection.cursor() as cursor:
        cursor.execute(JOBS["keep_chains"], [sorted(found)])
    return _chains_alive(list(found))


def _chains_alive(job_ids: list[UUID]) -> set[UUID]:
    if not job_ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(JOBS["chains_alive"], [job_ids])
        return {job_id for (job_id,) in cursor.fetchall()}


def _kept_back(job: Job, rows: Iterable[NewExecution]) -> list[NewExecution]:
    """What follows a run of a job that was paused meanwhile is Paused: who resumes it decides."""
    if job.archived_at is not None:
        return []
    return [row if job.paused_at is None or row.finished_at is not None else _paused(row) for row in rows]


def _paused(row: NewExecution) -> NewExecution:
    return replace(row, state=State.PAUSED, check_at=None, reason="paused", message="the job is paused")


def _as_begun(run: EndedRun) -> BegunRun:
    return BegunRun(
        id=run.id,
        job_id=run.job_id,
        trigger=run.trigger,
        scheduled_for=run.scheduled_for,
        begun_at=run.finished_at,
    )


def _waited_for(jobs: Mapping[UUID, Job], ended: Iterable[EndedRun]) -> dict[UUID, datetime]:
    """The jobs whose next occurrence may have been held for one of these runs, with the run's end."""
    return {
        run.job_id: run.finished_at
        for run in ended
        if run.job_id in jobs and (jobs[run.job_id].overlap == REPLACE or run.trigger is Trigger.CATCH_UP)
    }
