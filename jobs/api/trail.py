"""REST of what was changed of a job: the audit trail."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access.audit import Change, changes_of
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.documenting import documented
from executions.api.presentation import time_text
from jobs.api.trail_schemas import ChangePage
from jobs.listing import find_job

QUERY: dict[str, parameters.Reader] = {
    "limit": parameters.limit.saying("How many changes a page holds.", default=parameters.DEFAULT_LIMIT),
    "cursor": parameters.cursor.saying("Where to go on: as `next` says it."),
}


class JobChanges(RestView):
    in_path = {"job_id": parameters.uuid.saying("The job's id.")}

    @documented("Changes of a job", query=QUERY, answers={200: ChangePage}, errors=(404,))
    def get(self, request: Request, job_id: str) -> Response:
        """Who did what to the job and to its runs, when, and what was before and after; the latest first."""
        job = find_job(parameters.identity(job_id), self.user)
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        found = changes_of(job, limit + 1, before=self.query.get("cursor"))
        return page(request, [change_json(change) for change in found[:limit]], more=len(found) > limit)


def change_json(change: Change) -> dict[str, Any]:
    return {
        "id": str(change.id),
        "at": time_text(change.at),
        "who": change.who,
        "token": change.token,
        "action": change.action,
        "subject": change.subject,
        "fields": {
            name: {"before": before, "after": after} for name, (before, after) in change.fields.items()
        },
    }
