"""REST of retrying a run that has ended."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.levels import Level
from access.policy import require_level
from executions.api import parameters
from executions.api.base import RestView
from executions.api.documenting import Answer, documented
from executions.api.idempotency import KEYED, once_per_key
from executions.listing import find_execution
from executions.retrying import retry_execution
from scheduler_project.kernel.clock import utcnow


class RetriedRun(serializers.Serializer[Any]):
    """A run that does another's work once more."""

    executionId = serializers.UUIDField(help_text="The id of the new run.")
    retryOf = serializers.UUIDField(help_text="The id of the run that had ended.")


LOCATION = {"Location": "The address of the new run."}
MADE = Answer(RetriedRun, "It waits for a worker.", LOCATION)
MADE_BEFORE = Answer(RetriedRun, "It was made before, with this key.", LOCATION)


def _require_right(view: RestView, execution_id: str) -> None:
    find_execution(parameters.identity(execution_id), view.user)
    require_level(view.user, Level.OPERATE)


class ExecutionRetry(RestView):
    in_path = parameters.EXECUTION_ID

    @documented(
        "Run an ended run again", takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(404, 409)
    )
    @once_per_key(_require_right)
    def post(self, request: Request, execution_id: str) -> Response:
        """A new run, now: by the job as it is now, with the parameters and the planned time of this one.

        409: it has not ended, its job was deleted, or the key was used for another request.
        """
        execution = find_execution(parameters.identity(execution_id), self.user)
        made = retry_execution(execution, self.user, utcnow())
        return Response(
            {"executionId": str(made), "retryOf": str(execution.id)},
            status=HTTPStatus.CREATED,
            headers={"Location": f"/api/v1/executions/{made}"},
        )
