"""REST of work that runs elsewhere: how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.levels import Level
from executions.api import parameters
from executions.api.base import RestView
from executions.api.bodies import instant, read_body, text
from executions.api.documenting import Body, documented
from executions.api.reads import Reads, reads
from executions.api.run_access import RunTokenAuthentication, run_for, run_itself
from executions.listing import require_run
from executions.reporting import Report, report_end
from executions.states import State
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown, unsendable

ENDS = (str(State.COMPLETED_NORMALLY), str(State.COMPLETED_ABNORMALLY))
MOST_REASON = 2000


@reads(type="string", enum=list(ENDS))
def _end(value: object, name: str) -> State:
    if value not in ENDS:
        raise InvalidValue(f"{shown(value)} is not one of {', '.join(ENDS)}.", field=name)
    return State(str(value))


@reads(type="string", minLength=1, maxLength=MOST_REASON)
def _reason(value: object, name: str) -> str:
    found = text(value, name)
    if complaint := unsendable(found):
        raise InvalidValue(complaint, field=name)
    if not found.strip() or len(found) > MOST_REASON:
        raise InvalidValue(f"A text of 1 to {MOST_REASON} characters is needed.", field=name)
    return found


FIELDS: dict[str, Reads[Any]] = {
    "status": _end.saying("How the work ended."),
    "completedAt": instant.saying("When it ended, UTC; without it: now. Not before the start."),
    "failureReason": _reason.saying("Why it failed; needed with `Completed Abnormally`, and only there."),
}


def _read(given: Mapping[str, Any]) -> Report:
    found = read_body(given, FIELDS, required=("status",))
    failed = found["status"] is State.COMPLETED_ABNORMALLY
    if failed is not ("failureReason" in found):
        needed = "It is required with" if failed else "It goes only with"
        raise InvalidFields({"failureReason": [f"{needed} {State.COMPLETED_ABNORMALLY}."]})
    return Report(found["status"], found.get("completedAt"), found.get("failureReason", ""))


REPORT = Body("ReportedEnd", "How work that runs elsewhere ended.", FIELDS, ("status",), _read)


class ReportTaken(serializers.Serializer[Any]):
    """The report is safe, and will be recorded."""

    id = serializers.UUIDField(help_text="The run's id.")
    status = serializers.ChoiceField(choices=list(State), help_text="Its status as it is now.")


class ExecutionStatus(RestView):
    authentication_classes = [RunTokenAuthentication, *RestView.authentication_classes]
    in_path = parameters.EXECUTION_ID

    @documented("Report how a run ended", body=REPORT, answers={202: ReportTaken}, errors=(404, 409))
    def post(self, request: Request, execution_id: str) -> Response:
        """For work that runs elsewhere: with a user's token or with the run's own, PUNCTUAL_RUN_TOKEN. It
        is good for this alone. It is recorded within a second; what still runs of it then is stopped. 409: it
        has ended, or has not begun.
        """
        execution = run_for(request, parameters.identity(execution_id))
        itself = run_itself(request)
        if itself is None:
            require_run(self.user, Level.OPERATE, execution.id)
        attempt = None if itself is None else itself.attempt
        report: Report = self.given
        report_end(
            execution,
            Report(report.state, report.completed_at, report.failure_reason, attempt),
            utcnow(),
            by=self.user if attempt is None else None,
        )
        return Response({"id": str(execution.id), "status": execution.state}, status=HTTPStatus.ACCEPTED)
