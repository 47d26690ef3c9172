"""Reads jobs for people: in the order of their ids, by key."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Min, QuerySet

from executions.models import Execution
from executions.policy import User, teams_seen_by
from executions.states import State, Trigger
from jobs.models import Job
from scheduler_project.kernel.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSelection:
    """Which jobs; an empty text does not restrict."""

    owner: str = ""
    name: str = ""


def visible_jobs(user: User) -> QuerySet[Job]:
    """The jobs that ``user`` may see, with their owner and task."""
    teams = teams_seen_by(user)
    jobs = Job.objects.select_related("owner", "task")
    return jobs if teams is None else jobs.filter(owner_id__in=teams)


def list_jobs(selection: JobSelection, user: User, *, after: UUID | None, limit: int) -> list[Job]:
    """At most ``limit`` jobs behind the id ``after``."""
    jobs = visible_jobs(user)
    if selection.owner:
        jobs = jobs.filter(owner__name=selection.owner)
    if selection.name:
        jobs = jobs.filter(name=selection.name)
    if after is not None:
        jobs = jobs.filter(id__gt=after)
    return list(jobs.order_by("id")[:limit])


def find_job(job_id: UUID, user: User) -> Job:
    """NotFound where there is none that ``user`` may see."""
    job = visible_jobs(user).filter(id=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def next_runs(jobs: Collection[Job]) -> dict[UUID, datetime]:
    """When each of these jobs is due next by its schedule; a job that has no run planned is left out.

    The shard and ``check_at`` are there for the partial index that knows only live runs: without
    them each job's whole past would be read.
    """
    waiting = Execution.objects.filter(
        job_id__in=[job.id for job in jobs],
        shard__in={job.shard for job in jobs},
        check_at__isnull=False,
        state=str(State.WAITING),
        trigger=str(Trigger.SCHEDULE),
    )
    return dict(waiting.values_list("job_id").annotate(Min("scheduled_for")).order_by())
