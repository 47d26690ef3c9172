"""REST of the calendar: how many runs start when in the coming week, and which jobs those are."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api.base import RestView
from executions.api.documenting import documented
from executions.api.parameters import instant
from executions.api.presentation import time_text
from executions.api.reads import needed
from executions.tallies import minute_of
from jobs.api.calendar_schemas import CalendarMinute, CalendarShown
from jobs.calendar import Calendar, Starting, starting_in
from jobs.calendars_kept import week_of
from jobs.listing import visible_jobs
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.durations import format_duration

BUSIEST = 20
MOST_JOBS = 200
AT = needed(instant.saying("An instant within the minute; with its zone."))


class CalendarWeek(RestView):
    @documented("Starts of the coming week", answers={200: CalendarShown})
    def get(self, request: Request) -> Response:
        """How many runs of your jobs (superusers: of all) their schedules start in each minute of the next
        seven days. Paused jobs are not in it; jitter, end dates and changes of the clock are. Changes of
        jobs are seen at once."""
        return Response(_calendar_json(week_of(self.user, utcnow())))


class CalendarOfMinute(RestView):
    @documented("Jobs that start in a minute", query={"at": AT}, answers={200: CalendarMinute})
    def get(self, request: Request) -> Response:
        """Which jobs their schedules start in the minute of `at`, by team and name: at most 200, and how many
        there are."""
        minute = minute_of(self.query["at"])
        jobs, count = starting_in(visible_jobs(self.user), minute, MOST_JOBS)
        return Response(
            {"minute": time_text(minute), "count": count, "jobs": [_starting_json(item) for item in jobs]}
        )


def _calendar_json(found: Calendar) -> dict[str, Any]:
    return {
        "since": time_text(found.since),
        "jobs": found.jobs,
        "unreadable": found.unreadable,
        "starts": found.starts,
        "busiest": [
            {"minute": time_text(minute), "starts": starts} for minute, starts in found.busiest(BUSIEST)
        ],
    }


def _starting_json(item: Starting) -> dict[str, Any]:
    return {
        "jobId": str(item.job_id),
        "jobName": item.job,
        "owner": item.owner,
        "description": item.description,
        "jitter": format_duration(item.jitter),
        "starts": item.count,
        "times": [time_text(time) for time in item.times],
    }
