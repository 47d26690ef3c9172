"""Jobs in an overview: what troubled them lately, and what they are called."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executions.overview import Teams, Trouble, failures, late_starts
from jobs.models import Job


@dataclass(frozen=True, slots=True)
class JobTrouble:
    """``job``: its name, or "" where it is gone for good; ``owner``: the team's name."""

    job: str
    owner: str
    trouble: Trouble


def job_failures(now: datetime, teams: Teams, limit: int = 10) -> list[JobTrouble]:
    """The jobs that failed most often in the last day, for each reason."""
    return _named(failures(now, teams, limit))


def jobs_most_late(now: datetime, teams: Teams, limit: int = 10) -> list[JobTrouble]:
    """The jobs that most often started late in the last day."""
    return _named(late_starts(now, teams, limit))


def queues_in_use() -> set[str]:
    """The queues that jobs name which have not been deleted."""
    return set(Job.objects.filter(archived_at=None).order_by().values_list("queue", flat=True).distinct())


def _named(troubles: Collection[Trouble]) -> list[JobTrouble]:
    names: dict[UUID, tuple[str, str]] = {
        identity: (job, owner)
        for identity, job, owner in Job.objects.filter(
            id__in=[trouble.job_id for trouble in troubles]
        ).values_list("id", "name", "owner__name")
    }
    return [JobTrouble(*names.get(trouble.job_id, ("", "")), trouble) for trouble in troubles]
