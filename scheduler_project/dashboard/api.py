"""REST of the overview."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from access.policy import teams_seen_by
from executions.api.base import RestView
from executions.api.documenting import documented
from scheduler_project.dashboard.overview import overview
from scheduler_project.dashboard.presentation import overview_json
from scheduler_project.dashboard.schemas import OverviewShown


class OverviewPage(RestView):
    @documented("How it stands", answers={200: OverviewShown})
    def get(self, request: Request) -> Response:
        """What was due, started and ended in each of the last 60 minutes and how late, beats and their
        shards, workers and what they run, queues, failures of the last day, what is next: of the runs of
        your teams (superusers: of all). It may be asked as often as you like: it is made once a second."""
        return Response(overview_json(overview(teams_seen_by(self.user))))
