"""Outages: the misfire policy, applied to runs that should have started long ago.

The sweep finds them after an outage (Waiting, never sent, overdue by more than the grace); the window
gives out no run that old, so that nothing starts before it is settled. In bulk: a page of runs costs
a handful of statements, whatever the number of fires that each stands for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction

from executions.entries import Entry
from executions.holding import held
from executions.planning import NewExecution
from executions.scheduling import forbid, push_due_soon
from executions.transitions import Skip, hold_missed, insert, postpone, skip_missed
from jobs.listing import kept_jobs
from jobs.misfires import ALL, LATEST, NONE, Policy, Settlement, settle_alone, settle_overdue
from jobs.models import Job, Missed
from jobs.occurrences import continue_chain, due_time, past_spent, rows_of, rules_of, skipped_message
from jobs.overlaps import OWN_TERMS, Rules, Terms, following_settlement
from jobs.queries import CATCHUPS
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

SKIPPED_PAUSED = "skipped_paused"
CHOICES = {
    Missed.SKIP: Terms(Policy(NONE), timedelta(0), SKIPPED_PAUSED),
    Missed.RUN_LATEST: Terms(Policy(LATEST), timedelta(0), SKIPPED_PAUSED),
    Missed.RUN_ALL: Terms(Policy(ALL), timedelta(0), SKIPPED_PAUSED),
}
"""What may be chosen for the fires that passed during a pause: every one counts, however late."""


def chosen(job: Job, *, parked: bool) -> Terms:
    """What whoever resumes ``job`` has chosen; ``parked``: its next occurrence waits for a run under way."""
    return replace(CHOICES[Missed(job.on_resume)], parked=parked)


@dataclass(frozen=True, slots=True)
class MissedRun:
    """A waiting run that nothing has started; ``entry``: as the window knows it."""

    entry: Entry
    job_id: UUID
    scheduled_for: datetime

    @property
    def id(self) -> UUID:
        return self.entry.execution_id


@dataclass(slots=True)
class _Settled:
    """What is to be done: runs skipped, runs that catch up, the rows that each brings, runs due at once."""

    skips: list[Skip] = field(default_factory=list)
    holds: list[tuple[UUID, datetime, datetime]] = field(default_factory=list)
    new: dict[UUID, list[NewExecution]] = field(default_factory=dict)
    due: list[MissedRun] = field(default_factory=list)
    jobs: Mapping[UUID, Job] = field(default_factory=dict)


def settle_missed(runs: Sequence[MissedRun], now: datetime, terms: Terms = OWN_TERMS) -> list[Entry]:
    """Skip the runs, or let them catch up, and go on with the regular chain, in one transaction.

    What somebody else has begun or changed meanwhile stays as it is. Returned, and pushed where they are
    due soon: the window entries of what is new. A run whose job is gone, or cannot be read, is due now.
    """
    if not runs:
        return []
    with transaction.atomic():
        settled = _settled(runs, now, terms)
        skipped = skip_missed(settled.skips, now)
        won = skipped | hold_missed(settled.holds)
        new = [row for identity in won for row in settled.new[identity]]
        entries = insert(past_spent(settled.jobs, new, now))
        entries += _due_now(settled.due, now)
    push_due_soon(entries, now)
    forbid(sorted(skipped))  # one that was sent, and neither taken nor recorded yet, must not start any more
    logger.warning("misfires_settled", extra={"runs": len(won), "caught_up": len(settled.holds)})
    return entries


def _settled(runs: Sequence[MissedRun], now: datetime, terms: Terms) -> _Settled:
    """What is to be done, while nobody changes the jobs."""
    jobs = kept_jobs({run.job_id for run in runs})
    runs = _still_missed(runs)  # before it is asked where their chains end: others may have gone on with them
    settled = _Settled(jobs=jobs)
    ends = _chain_ends(list(jobs))
    for run in runs:
        job = jobs.get(run.job_id)
        if job is not None and (job.paused_at or job.archived_at):
            continue  # it was paused or deleted just now, and this run with it
        rules = _rules(job, terms)
        if job is None or rules is None:
            settled.due.append(run)
        else:
            _settle(job, rules, run, ends.get(run.job_id, run.scheduled_for), now, settled)
    return settled


def _still_missed(runs: Sequence[MissedRun]) -> list[MissedRun]:
    """Those that nobody has begun, settled or changed since they were read; nobody does from now on.

    Of two beats that look after one shard for a moment, the second must not settle what the first has let
    catch up: it stands for fires up to where the first went on with the chain.
    """
    ids = sorted(run.id for run in runs)
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS["keep_missed"], [ids, ids[0], ids[-1]])
        found = {identity for (identity,) in cursor.fetchall()}
    return [run for run in runs if run.id in found]


def resume_chain(job: Job, last_planned: datetime, now: datetime, terms: Terms) -> list[Entry]:
    """Go on with a job that was paused, of which nothing waits; within the caller's transaction.

    ``last_planned`` is the planned time of the last run that was made; ``terms`` are those of ``chosen``,
    for the fires since then. Where a run of the job waits: ``settle_missed([it], now, terms)``.
    """
    entries = insert(past_spent({job.id: job}, continue_chain(job, last_planned, now, terms), now))
    push_due_soon(entries, now)
    return entries


def _rules(job: Job | None, terms: Terms) -> Rules | None:
    try:
        return None if job is None else terms.of(rules_of(job))
    except InvalidValue as error:  # a zone that the tzdata of today no longer has
        logger.error("schedule_unreadable", extra={"job": job and job.id, "error": error.message})
        return None


def _settle(
    job: Job, rules: Rules, run: MissedRun, chain_end: datetime, now: datetime, settled: _Settled
) -> None:
    settlement = _settlement(job, rules, run, run.scheduled_for >= chain_end, now)
    kept, skipped = settlement.decision.run, settlement.decision.skipped
    rows = rows_of(job, following_settlement(rules, settlement), now)
    settled.new[run.id] = [row for row in rows if row.scheduled_for != run.scheduled_for]
    if kept is not None and kept.first == run.scheduled_for:
        settled.holds.append((run.id, held(kept.first), kept.last))
    elif skipped is not None:
        settled.skips.append(Skip(run.id, rules.reason, skipped_message(skipped), skipped.count))


def _settlement(job: Job, rules: Rules, run: MissedRun, last: bool, now: datetime) -> Settlement:
    if not last:  # a later one is there already, and what came after is settled with it
        return settle_alone(
            run.scheduled_for, now, rules.policy if rules.policy.kind == ALL else Policy(NONE)
        )
    spread = due_time(job, run.scheduled_for) - run.scheduled_for
    return settle_overdue(rules.schedule, run.scheduled_for, now - spread, rules.grace, rules.policy)


def _due_now(runs: Sequence[MissedRun], now: datetime) -> list[Entry]:
    won = postpone([(run.id, run.entry.due, now) for run in runs])
    return [replace(run.entry, due=now) for run in runs if run.id in won]


def _chain_ends(job_ids: Sequence[UUID]) -> Mapping[UUID, datetime]:
    """A job whose runs overlap may have several waiting: its chain goes on from the last."""
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS["latest_planned"], {"jobs": list(job_ids)})
        return dict(cursor.fetchall())
