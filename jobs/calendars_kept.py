"""The calendar of the coming week, worked out again only where a job has changed or a minute has passed."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Max, Sum

from access.policy import User, teams_seen_by
from executions.tallies import minute_of
from jobs.calendar import Calendar, calendar
from jobs.listing import visible_jobs
from scheduler_project.kernel.sharing import Shared

_shared = Shared(60.0)


def week_of(user: User, now: datetime) -> Calendar:
    """Of the jobs that ``user`` sees, from the minute of ``now``.

    Every change of a job raises its revision, so the sum of them says whether anything is other than it was.
    """
    jobs = visible_jobs(user)
    state = jobs.order_by().aggregate(jobs=Count("id"), changes=Sum("revision"), latest=Max("created_at"))
    since = minute_of(now)
    key = (teams_seen_by(user), since, *state.values())
    found: Calendar = _shared.get(key, lambda: calendar(jobs, since))
    return found
