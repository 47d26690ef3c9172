"""REST of executions: thin edges over listing.py, logs.py and services.py."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import Group
from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from executions import services
from executions.api import parameters
from executions.api.base import RestView, page, require_empty
from executions.api.presentation import execution_json, history_json
from executions.listing import Selection, events_of, find_execution, newest, team_names
from executions.logs import latest_attempt, read_log
from executions.models import Execution
from executions.policy import User, teams_seen_by
from executions.rescheduling import reschedule_execution
from executions.services import Cancelling
from executions.states import State
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidFields

LIST_PARAMETERS: dict[str, parameters.Reader] = {
    "job": parameters.uuid,
    "owner": parameters.text,
    "status": parameters.states,
    "from": parameters.instant,
    "to": parameters.instant,
    "limit": parameters.limit,
    "cursor": parameters.cursor,
}
LOG_PARAMETERS: dict[str, parameters.Reader] = {"attempt": parameters.whole_number(1, 32767)}


class ExecutionList(RestView):
    def get(self, request: Request) -> Response:
        """The latest due first. ``from`` and ``to``: due in [from, to)."""
        query = parameters.read_query(request.query_params, LIST_PARAMETERS)
        limit = query.get("limit", parameters.DEFAULT_LIMIT)
        found = newest(_selection(query, self.user), before=query.get("cursor"), limit=limit + 1)
        shown = found[:limit]
        owners = team_names(shown)
        return page(
            request,
            [execution_json(execution, owners) for execution in shown],
            more=len(found) > limit,
        )


def _selection(query: dict[str, Any], user: User) -> Selection:
    since, until = query.get("from"), query.get("to")
    if since is not None and until is not None and since >= until:
        raise InvalidFields({"to": ["It is not later than `from`."]})
    return Selection(
        teams=_teams(query.get("owner"), user),
        job_id=query.get("job"),
        states=tuple(query.get("status", ())),
        since=since,
        until=until,
    )


def _teams(owner: str | None, user: User) -> frozenset[int] | None:
    """The teams whose runs are asked for and may be seen; a team of no such name has none."""
    seen = teams_seen_by(user)
    if owner is None:
        return seen
    named = frozenset(Group.objects.filter(name=owner).values_list("id", flat=True))
    return named if seen is None else named & seen


class ExecutionDetail(RestView):
    def get(self, request: Request, execution_id: str) -> Response:
        parameters.read_query(request.query_params, {})
        return Response(_shown(find_execution(parameters.identity(execution_id), self.user)))


class ExecutionHistory(RestView):
    def get(self, request: Request, execution_id: str) -> Response:
        """The events in order, and the time in each state."""
        parameters.read_query(request.query_params, {})
        execution = find_execution(parameters.identity(execution_id), self.user)
        return Response(history_json(execution, events_of(execution), utcnow()))


class ExecutionLogs(RestView):
    def get(self, request: Request, execution_id: str) -> StreamingHttpResponse:
        """The output of one attempt as plain text: ``?attempt=2``, or the latest that has begun."""
        query = parameters.read_query(request.query_params, LOG_PARAMETERS)
        execution = find_execution(parameters.identity(execution_id), self.user)
        attempt = query.get("attempt") or latest_attempt(execution)
        return StreamingHttpResponse(
            read_log(execution, attempt),
            content_type="text/plain; charset=utf-8",
            headers={"Punctual-Attempt": str(attempt), "Cache-Control": "no-store"},
        )


class ExecutionCancel(RestView):
    def post(self, request: Request, execution_id: str) -> Response:
        """200: it will not start. 202: it runs, and its worker has been asked to stop it."""
        parameters.read_query(request.query_params, {})
        require_empty(self.body)
        execution = find_execution(parameters.identity(execution_id), self.user)
        done = services.cancel_execution(execution.id, self.user.get_username(), utcnow())
        at_once = done is Cancelling.CANCELLED
        return Response(
            {"id": str(execution.id), "status": str(State.CANCELLED if at_once else State.ACTIVE)},
            status=HTTPStatus.OK if at_once else HTTPStatus.ACCEPTED,
        )


class ExecutionReschedule(RestView):
    def post(self, request: Request, execution_id: str) -> Response:
        """``at``: an instant; the run that waits is due then, or now where that has passed."""
        parameters.read_query(request.query_params, {})
        at = parameters.read_body(self.body, {"at": parameters.instant})["at"]
        execution = find_execution(parameters.identity(execution_id), self.user)
        reschedule_execution(execution.id, at, self.user.get_username(), utcnow())
        return Response(_shown(find_execution(execution.id, self.user)))


def _shown(execution: Execution) -> dict[str, object]:
    return execution_json(execution, team_names([execution]))
