"""REST of executions: thin edges over listing.py, logs.py and services.py."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.models import Group
from rest_framework.request import Request
from rest_framework.response import Response

from access.policy import User, teams_seen_by
from executions import services
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.bodies import instant
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import only, some_of
from executions.api.parameters import EXECUTION_ID
from executions.api.presentation import cancelled_json, execution_json, history_json, time_text
from executions.api.run_access import RunTokenAuthentication, run_for
from executions.api.run_filters import FILTERS, ordering, selection_of
from executions.api.schemas import CancelAsked, ExecutionDetails, ExecutionPage, ExecutionShown, HistoryShown
from executions.listing import events_of, find_execution, listed, retries_of, team_names
from executions.models import Execution
from executions.pages import NEWEST
from executions.rescheduling import reschedule_execution
from executions.services import Cancelling
from executions.store import hasty_store
from executions.waiting import waits_for
from scheduler_project.kernel.clock import utcnow

LIST_PARAMETERS: dict[str, parameters.Reader] = {
    "job": parameters.uuid.saying("Only those of this job."),
    "owner": parameters.text.saying("Only those of this team."),
    **FILTERS,
    "ordering": ordering,
    "fields": some_of(ExecutionShown().get_fields()),
    "limit": parameters.limit,
    "cursor": parameters.cursor,
}
MOVE = Body(
    "Move", "Another time.", {"at": instant.saying("When it is to be due; now where it has passed.")}, ("at",)
)


LOOKED_UNTIL = "Punctual-Looked-Until"
PAGE = Answer(
    ExecutionPage,
    "A page of a list.",
    headers={LOOKED_UNTIL: "Until which due time this page has looked, where it is not full."},
)


class ExecutionList(RestView):
    @documented("Runs", query=LIST_PARAMETERS, answers={200: PAGE})
    def get(self, request: Request) -> Response:
        """Those that the user may see, the latest due first unless ``ordering`` says otherwise.

        A page looks at a bounded number of runs: where few have what is asked for, it may hold fewer than
        ``limit``, even none; ``next`` goes on from there, until it is null.
        """
        query, limit = self.query, self.query.get("limit", parameters.DEFAULT_LIMIT)
        selection = selection_of(query, _teams(query.get("owner"), self.user), query.get("job"))
        order = query.get("ordering", NEWEST)
        found = listed(selection, after=query.get("cursor"), limit=limit, order=order)
        owners = team_names(found.rows)
        answer = page(
            request,
            only([execution_json(execution, owners) for execution in found.rows], query.get("fields")),
            more=found.then is not None,
            cursors=[parameters.cursor_text(execution.id) for execution in found.rows],
            then=found.then,
        )
        if found.looked_until is not None:
            answer[LOOKED_UNTIL] = str(time_text(found.looked_until))
        return answer


def _teams(owner: str | None, user: User) -> frozenset[int] | None:
    """The teams whose runs are asked for and may be seen; a team of no such name has none."""
    seen = teams_seen_by(user)
    if owner is None:
        return seen
    named = frozenset(Group.objects.filter(name=owner).values_list("id", flat=True))
    return named if seen is None else named & seen


class ExecutionDetail(RestView):
    authentication_classes = [RunTokenAuthentication, *RestView.authentication_classes]
    in_path = EXECUTION_ID

    @documented("One run", answers={200: ExecutionDetails})
    def get(self, request: Request, execution_id: str) -> Response:
        """What became of it so far. The run itself may ask too, by its own token."""
        return Response(_shown(run_for(request, parameters.identity(execution_id))))


class ExecutionHistory(RestView):
    in_path = EXECUTION_ID

    @documented("The history of a run", answers={200: HistoryShown})
    def get(self, request: Request, execution_id: str) -> Response:
        """Its events in order, and the time in each state."""
        execution = find_execution(parameters.identity(execution_id), self.user)
        return Response(history_json(execution, events_of(execution), utcnow()))


class ExecutionCancel(RestView):
    in_path = EXECUTION_ID

    @documented(
        "Cancel a run",
        answers={
            200: Answer(CancelAsked, "It has not begun, and will not."),
            202: Answer(CancelAsked, "It has begun, or may have, and is asked to stop."),
        },
        errors=(409,),
    )
    def post(self, request: Request, execution_id: str) -> Response:
        """What waits is ended at once, what runs is stopped by its worker. 409: it has ended."""
        execution = find_execution(parameters.identity(execution_id), self.user)
        done = services.cancel_execution(execution.id, self.user, utcnow())
        status = HTTPStatus.OK if done is Cancelling.CANCELLED else HTTPStatus.ACCEPTED
        return Response(cancelled_json(execution.id, done), status=status)


class ExecutionReschedule(RestView):
    in_path = EXECUTION_ID

    @documented("Move a run", body=MOVE, answers={200: ExecutionDetails}, errors=(409,))
    def post(self, request: Request, execution_id: str) -> Response:
        """A run that waits is due at another time; it keeps its id and its planned time, and its job goes on
        at its own. 409: it does not wait."""
        at = self.given["at"]
        execution = find_execution(parameters.identity(execution_id), self.user)
        reschedule_execution(execution.id, at, self.user, utcnow())
        return Response(_shown(find_execution(execution.id, self.user)))


def _shown(execution: Execution) -> dict[str, object]:
    shown = execution_json(execution, team_names([execution]))
    retries = [str(identity) for identity in retries_of(execution)]
    return {**shown, "retries": retries, "waitsFor": waits_for(execution, hasty_store())}
