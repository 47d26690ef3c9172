"""Reads jobs for people: in the order of their ids, by key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Case, Min, Q, QuerySet, When
from django.db.models.functions import Coalesce

from access.policy import User, teams_seen_by
from executions.holding import FIRST_HELD
from executions.models import Execution, RunSpec
from executions.states import State, Trigger
from jobs.models import Job
from jobs.queries import JOBS
from scheduler_project.kernel.errors import NotFound

NOT_YET_LATE = timedelta(seconds=5)  # a run that is due is begun within moments


def visible_jobs(user: User, *, archived: bool = False) -> QuerySet[Job]:
    """The jobs that ``user`` may see, with their owner and task. ``archived``: the deleted ones too."""
    teams = teams_seen_by(user)
    jobs = Job.objects.select_related("owner", "task", "pool")
    if not archived:
        jobs = jobs.filter(archived_at=None)
    return jobs if teams is None else jobs.filter(owner_id__in=teams)


def find_job(job_id: UUID, user: User, *, lock: bool = False) -> Job:
    """NotFound where there is none that ``user`` may see, or it has been deleted.

    ``lock``: nobody else changes it until the transaction ends.
    """
    jobs = visible_jobs(user).filter(id=job_id)
    job = (jobs.select_for_update(of=("self",)) if lock else jobs).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def next_runs(jobs: Collection[Job]) -> dict[UUID, datetime]:
    """When each of these jobs is due next, by its schedule or because a run was moved; else it is left out.

    The shard and ``check_at`` are there for the partial index that knows only live runs: without
    them each job's whole past would be read.
    """
    return dict(_to_come(jobs).values_list("job_id").annotate(next=Min(_due())).order_by())


def run_to_come(job: Job) -> UUID | None:
    """The run that ``next_runs`` has the time of."""
    return _to_come([job]).order_by(_due()).values_list("id", flat=True).first()


def _to_come(jobs: Collection[Job]) -> QuerySet[Execution]:
    return Execution.objects.filter(
        job_id__in=[job.id for job in jobs],
        shard__in={job.shard for job in jobs},
        check_at__isnull=False,
        state=str(State.WAITING),
    ).filter(Q(trigger=str(Trigger.SCHEDULE)) | Q(moved_to__isnull=False))


def _due() -> Case:
    return Case(
        When(attempt__gt=1, check_at__lt=FIRST_HELD, then="check_at"),  # a retry's planned time has passed
        default=Coalesce("moved_to", "scheduled_for"),
    )


def latest_runs(jobs: Collection[Job]) -> dict[UUID, Execution]:
    """The latest run of each of these jobs that has begun or ended; a job without one is left out."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS["latest_runs"], [[job.id for job in jobs]])
        ids = [found for (found,) in cursor.fetchall()]
    if not ids:
        return {}
    runs = Execution.objects.filter(id__in=ids, id__gte=min(ids), id__lte=max(ids))
    return {run.job_id: run for run in runs}


def jobs_to_plan(kept: Mapping[UUID, Job]) -> dict[UUID, Job]:
    """Those of these jobs that are to have occurrences."""
    return {job_id: job for job_id, job in kept.items() if job.paused_at is None and job.archived_at is None}


def kept_jobs(job_ids: Collection[UUID]) -> dict[UUID, Job]:
    """These jobs, kept from being settled until the transaction ends.

    So whoever pauses or edits a job sees all that was planned for it before, and what is planned
    afterwards is planned for the job as it is then.
    """
    with connection.cursor() as cursor:
        cursor.execute(JOBS["keep_unsettled"], [sorted(job_ids)])
    return settled_jobs(job_ids)


def settled_jobs(job_ids: Collection[UUID]) -> dict[UUID, Job]:
    """These jobs, with the schedule that was last settled: a newer one counts from its own settling on."""
    jobs = Job.objects.in_bulk(list(job_ids))
    edited = [job for job in jobs.values() if job.revision != job.settled_revision]
    specs = RunSpec.objects.in_bulk([job.spec_id for job in edited]) if edited else {}
    for job in edited:
        job.schedule = specs[job.spec_id].body["schedule"]
    return jobs
