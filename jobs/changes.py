"""Carrying out a change of a job, by whatever route it came.

    service, admin, .update(), SQL ─▶ row: revision + 1 (a trigger) ─▶ settle ─▶ settled_revision = revision
                                              └─ NOTIFY ─▶ beats ──────┘

``settle`` brings the job's runs in line with its row, whatever they were in line with before:

1. the runs that the change is about and that may be underway are called back (executions/redirection.py);
2. in one transaction, with the job and its runs locked, they are ended, paused, resumed, moved or
   given the new snapshot (jobs/alignment.py);
3. what is due soon is sent again;
4. the revision is noted as settled, unless the row has changed meanwhile.

The service that makes a change settles it at once. Whatever it leaves undone (Redis is away, it dies)
stays unsettled, and the beats do it; doing it twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from time import sleep
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from executions.entries import Entry
from executions.ids import lowest_id
from executions.redirection import RunBusy, Withdrawn, live_runs, send_again, withdraw
from jobs.alignment import Wanted, align, concerned, wanted
from jobs.models import Job, Missed
from jobs.pools import publish_job_limit
from jobs.queries import JOBS
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

TRIES = 5
PAGE = 100
NEAR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Aligned:
    revision: int
    entries: list[Entry]


def settle_soon(job_id: UUID, now: datetime) -> None:
    """Settle once the outermost transaction has committed; where that cannot be done now, the beats will."""
    transaction.on_commit(partial(_settle_or_leave, job_id, now))


def _settle_or_leave(job_id: UUID, now: datetime) -> None:
    try:
        settle(job_id, now)
    except RetryableError as error:
        logger.warning("settling_left_to_beats", extra={"job": job_id, "error": error.message})


def unsettled(shards: Sequence[int], now: datetime) -> list[UUID]:
    """Jobs of these shards whose changes have not been carried out, the most urgent first; at most PAGE."""
    near = [lowest_id(now - NEAR), lowest_id(now + NEAR)]
    with connection.cursor() as cursor:
        cursor.execute(JOBS["unsettled"], [list(shards), *near, PAGE])
        return [row[0] for row in cursor.fetchall()]


def settle(job_id: UUID, now: datetime) -> None:
    """Bring the runs of a job in line with its row. StoreUnavailable, RunBusy: not now, but later.

    One at a time: of two that call the same runs back, the one that comes too late would leave them so.
    """
    with _alone(job_id):
        for delay in islice(exponential(first=0.01), TRIES):
            try:
                _settle(job_id, now)
            except RunBusy:
                sleep(delay)
                continue
            return
    raise RunBusy(f"The runs of job {job_id} change all the time; it is settled later.")


@contextmanager
def _alone(job_id: UUID) -> Iterator[None]:
    with connection.cursor() as cursor:
        try:
            cursor.execute(JOBS["settle_alone"], [str(job_id)])
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise RunBusy(f"Job {job_id} is being settled for long; it is settled later.") from error
            raise
        try:
            yield
        finally:
            cursor.execute(JOBS["settled"], [str(job_id)])


def _settle(job_id: UUID, now: datetime) -> None:
    job = Job.objects.select_related("owner", "task", "pool", "spec").filter(id=job_id).first()
    if job is None or job.revision == job.settled_revision:
        return
    aim = wanted(job, now)
    if aim.problem:
        logger.error("job_unreadable", extra={"job": job.id, "error": aim.problem})
    withdrawn = withdraw([run for run in live_runs(job_id) if concerned(aim, run)], now)
    aligned = _align(aim, withdrawn, now)
    send_again(withdrawn, aligned.entries, now)
    publish_job_limit(job)
    Job.objects.filter(id=job_id, revision=aligned.revision).update(settled_revision=aligned.revision)
    logger.info("job_settled", extra={"job": job_id, "revision": aligned.revision})


def _align(aim: Wanted, withdrawn: Withdrawn, now: datetime) -> _Aligned:
    """RunBusy where the job or one of its runs is not any more as it was when it was looked at."""
    job = aim.job
    with transaction.atomic(durable=True):
        if not Job.objects.select_for_update().filter(id=job.id, revision=job.revision):
            raise RunBusy
        runs = live_runs(job.id, lock=True)
        for run in runs:
            if concerned(aim, run):
                withdrawn.check(run, now)
        same = Job.objects.filter(id=job.id)
        if aim.problem:
            same.update(problem=aim.problem)
        else:
            same.update(spec_id=job.spec_id, schedule=job.schedule, on_resume=Missed.SKIP, problem="")
        entries = align(aim, runs, now, begun=withdrawn.begun)
        return _Aligned(same.values_list("revision", flat=True).get(), entries)
