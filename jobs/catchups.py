"""Catching up: which held runs may start now.

Missed fires that are still to run, and backfills, wait as held rows (executions/holding.py), one of each
job that catches up. The beat gives leave to a few at a time (beat/catchups.py); here is which:

catchup    one run of a job at a time, in order; not of a paused job. Unless its runs may overlap, none
           while a regular run of the job is under way or about to begin, and while it catches up, its
           next regular occurrence is parked (jobs/parking.py).
backfill   at most ``most_active`` runs of the job at once; they stand beside the regular chain.

Nothing is remembered between two calls: what is under way is counted in the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from executions.entries import Entry
from executions.holding import FIRST_HELD, held
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import postpone
from jobs.overlaps import ALLOW, QUEUE
from jobs.parking import park
from jobs.queries import CATCHUPS

SOON = timedelta(seconds=2)
"""A regular run that is due within this is not held up by one that catches up."""
AGAIN = timedelta(seconds=2)
"""After this a run that could not start is looked at again; meanwhile it hides no other."""
MARGIN = 50


class Candidate(NamedTuple):
    """A row of the query ``candidates``.

    ``going``: its job is not paused; ``busy``: a regular run is under way, or about to be.
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

    @property
    def free(self) -> bool:
        beside = self.trigger == Trigger.BACKFILL or self.overlap == ALLOW
        return self.going and (beside or not self.busy)

    @property
    def parks(self) -> bool:
        """Whether the job's next regular run waits until this one has ended."""
        return self.trigger == Trigger.CATCH_UP and self.overlap not in (ALLOW, QUEUE)


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
    """Give leave to at most ``room`` held runs of ``shards``; to how many."""
    admission = admit(_candidates(shards, 2 * room + MARGIN, now), room)
    admitted = admission.admitted
    park([run.job_id for run in admitted if run.parks], now)
    with transaction.atomic():
        won = postpone([(run.id, run.check_at, now) for run in admitted])
        postpone([(run.id, run.check_at, held(now + AGAIN)) for run in admission.turned_away])
    push_due_soon([_entry(run, now) for run in admitted if run.id in won], now)
    return len(won)


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
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(CATCHUPS["candidates"], parameters)
        return [Candidate(*row) for row in cursor.fetchall()]
