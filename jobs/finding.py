"""Jobs by what people call them: an id or the beginning of one, ``owner/name``, or a name."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from access.policy import User
from executions.finding import ids_that_begin
from jobs.listing import visible_jobs
from jobs.models import Job
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.texts import shown

LEAST_DIGITS = 4
MOST_NAMED = 5


def job_called(text: str, user: User) -> Job:
    """The one job that ``user`` may see and that ``text`` names. A name goes before the beginning of an id.

    NotFound; InvalidValue where several are named.
    """
    jobs = visible_jobs(user)
    return _only(jobs.filter(_named(text)), text) or _by_id(jobs, text) or _missing(text)


def _named(text: str) -> Q:
    """Both names may hold a slash."""
    condition = Q(name=text)
    for place, character in enumerate(text):
        if character == "/":
            condition |= Q(owner__name=text[:place], name=text[place + 1 :])
    return condition


def _by_id(jobs: QuerySet[Job], text: str) -> Job | None:
    bounds = ids_that_begin(text, LEAST_DIGITS)
    return None if bounds is None else _only(jobs.filter(id__gte=bounds[0], id__lte=bounds[1]), text)


def _only(jobs: QuerySet[Job], text: str) -> Job | None:
    found = list(jobs.order_by("owner__name", "name")[: MOST_NAMED + 1])
    if len(found) < 2:
        return found[0] if found else None
    labels = [f"{job.owner.name}/{job.name} ({job.id})" for job in found]
    told = ", ".join(labels[:MOST_NAMED]) + (", …" if len(labels) > MOST_NAMED else "")
    raise InvalidValue(f"{shown(text)} names several jobs: {told}. Say which by its id or as owner/name.")


def _missing(text: str) -> Job:
    raise NotFound(f"There is no job {shown(text)}. Allowed: an id, its first digits, owner/name, or a name.")
