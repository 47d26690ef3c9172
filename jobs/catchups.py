"""Catching up: which held runs may start now.

Missed fires that are still to run, and backfills, wait as held rows (executions/holding.py), one of each
job that catches up. The beat gives leave to a few at a time (beat/catchups.py); here is which:

catchup    one run of a job at a time, in order; not of a paused job. Unless its runs may overlap, none
           while a regular run of the job is under way or about to begin, and while it catches up, its
           next regular occurrence is parked (jobs/parking.py). One that has been kept waiting for PATIENCE
           takes any gap between two regular runs, and the place of those that are due meanwhile (with
           ``replace`` it is cancelled for the first of them). Where there is none for GIVE_UP, it and all
           that follows it are one skipped row that says so.
backfill   at most ``most_active`` runs of the job at once; they stand beside the regular chain.

Nothing is remembered between two calls: what is under way is counted in the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from executions.entries import Entry
from executions.holding import FIRST_HELD, held
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import postpone, skip_missed
from jobs.models import Job
from jobs.occurrences import skip_of
from jobs.overlaps import ALLOW, QUEUE, SKIPPED_OVERLAP
from jobs.parking import park
from jobs.queries import CATCHUPS

SOON = timedelta(seconds=2)
"""A regular run that is due within this is not held up by one that catches up."""
AGAIN = timedelta(seconds=2)
"""After this a run that could not start is looked at again; meanwhile it hides no other."""
PATIENCE = timedelta(seconds=10)
"""Kept waiting for longer, a run does not make way any more for a regular one that is about to begin."""
GIVE_UP = timedelta(minutes=10)
"""Kept waiting for longer, a run is given up."""
MARGIN = 50


class Candidate(NamedTuple):
    """A row of the query ``candidates``.

    ``going``: its job is not paused; ``busy``: a regular run is under way, or about to be;
    ``turned_away_at``: the first time that it was not free for that.
    """

    id: UUID
    spec_id: UUID
    attempt: int
    generation: int
    job_id: UUID
    trigger: str
    check_at: datetime
    overlap: str
    going: bool
    busy: bool
    scheduled_for: datetime
    catch_up_until: datetime | None = None
    turned_away_at: datetime | None = None

    @property
    def free(self) -> bool:
        beside = self.trigger == Trigger.BACKFILL or self.overlap == ALLOW
        return self.going and (beside or not self.busy)

    @property
    def parks(self) -> bool:
        """Whether the job's next regular run waits until this one has ended."""
        return self.trigger == Trigger.CATCH_UP and self.overlap not in (ALLOW, QUEUE)

    def hopeless(self, now: datetime) -> bool:
        """Whether the job's regular runs have left no room for too long."""
        since = self.turned_away_at
        return self.going and self.parks and since is not None and since <= now - GIVE_UP


@dataclass(frozen=True, slots=True)
class Admission:
    admitted: list[Candidate]
    turned_away: list[Candidate]


def admit(candidates: Sequence[Candidate], room: int) -> Admission:
    """The first ``room`` of those that may start, and those that may not yet (pure)."""
    free = [candidate for candidate in candidates if candidate.free]
    return Admission(free[:room], [candidate for candidate in candidates if not candidate.free])


def count_under_way(shards: Sequence[int], now: datetime) -> int:
    """How many runs that catch up or are backfilled have been given leave and have not ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            CATCHUPS["under_way"], {"shards": list(shards), "first": FIRST_HELD, "soon": now + SOON}
        )
        return int(cursor.fetchone()[0])


def start_catch_ups(shards: Sequence[int], room: int, now: datetime) -> int:
    """Give leave to at most ``room`` held runs of ``shards``; to how many.

    A regular run may begin before it can be parked: what is to start is looked at once more after that.
    """
    limit = 2 * room + MARGIN
    admission = admit(_candidates(shards, limit, now), room)
    parking = [run for run in admission.admitted if run.parks]
    begun = park([run.job_id for run in parking], now)
    after = {run.id: run.free for run in _candidates(shards, limit, now)} if parking else {}
    late = [run for run in parking if run.job_id in begun or not after.get(run.id)]
    admitted = [run for run in admission.admitted if run not in late]
    with transaction.atomic():
        won = postpone([(run.id, run.check_at, now) for run in admitted])
        _turn_away([*late, *admission.turned_away], now)
    push_due_soon([_entry(run, now) for run in admitted if run.id in won], now)
    return len(won)


def _turn_away(runs: Sequence[Candidate], now: datetime) -> None:
    given_up = _give_up([run for run in runs if run.hopeless(now)], now)
    rows = [
        (run.id, run.check_at, held(now + AGAIN), now if run.going else None, _why(run, now))
        for run in runs
        if run.id not in given_up
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(
                CATCHUPS["turn_away"], [list(column) for column in zip(*sorted(rows), strict=True)]
            )


def _why(run: Candidate, now: datetime) -> str:
    since = run.turned_away_at or now
    return f"waits since {since:%Y-%m-%d %H:%M:%S} UTC for a gap between the regular runs of its job"


def _give_up(runs: Sequence[Candidate], now: datetime) -> set[UUID]:
    """End these for all the fires that they stand for; the ids won."""
    jobs = Job.objects.in_bulk({run.job_id for run in runs})
    minutes = GIVE_UP // timedelta(minutes=1)
    skips = []
    for run in runs:
        until = run.catch_up_until or run.scheduled_for
        skip = skip_of(jobs[run.job_id], run.id, run.scheduled_for, until, SKIPPED_OVERLAP)
        why = f"{skip.message}: for {minutes} minutes the regular runs left no gap to catch up in"
        skips.append(replace(skip, message=why))
    return skip_missed(skips, now)


def _entry(run: Candidate, now: datetime) -> Entry:
    return Entry(
        execution_id=run.id,
        spec_id=run.spec_id,
        attempt=run.attempt,
        due=now,
        generation=run.generation,
    )


def _candidates(shards: Sequence[int], limit: int, now: datetime) -> list[Candidate]:
    parameters: dict[str, Any] = {
        "shards": list(shards),
        "first": FIRST_HELD,
        "until": held(now),
        "soon": now + SOON,
        "impatient": now - PATIENCE,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS["candidates"], parameters)
        return [Candidate(*row) for row in cursor.fetchall()]
