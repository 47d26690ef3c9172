"""REST: why is a run not running?"""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView
from executions.api.documenting import documented
from executions.api.presentation import why_json
from executions.api.schemas import WhyShown
from executions.listing import find_execution
from executions.why import why
from scheduler_project.kernel.clock import utcnow


class ExecutionWhy(RestView):
    in_path: ClassVar = {"execution_id": parameters.uuid.saying("The id of the run.")}

    @documented("Why a run is not running", answers={200: WhyShown}, errors=(404,))
    def get(self, request: Request, execution_id: str) -> Response:
        """In sentences with their facts, as it is at this moment; the first cause keeps it now.

        Answered within about two seconds, whatever part of the system is away: that is a cause then.
        """
        execution = find_execution(parameters.identity(execution_id), self.user)
        return Response(why_json(execution, why(execution, utcnow())))
