"""The output of runs over REST: whole, a range of it, its last lines, or live."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from containers.logs.portions import ByteRange, read_range
from executions.api import parameters
from executions.api.base import RestView
from executions.api.documenting import Answer, documented
from executions.api.log_stream import follow
from executions.api.parameters import EXECUTION_ID
from executions.api.reads import Reads
from executions.listing import find_execution
from executions.log_following import Place, begun_attempt, place_of_tail, read_place
from executions.logs import latest_attempt, read_log, read_log_range
from executions.models import Execution
from scheduler_project.kernel.errors import InvalidFields, NotFound
from scheduler_project.problems import problem

MOST_LINES = 10_000
PARAMETERS: dict[str, parameters.Reader] = {
    "attempt": parameters.whole_number(1, 32767).saying(
        "The output of this attempt; default: of the latest that has begun."
    ),
    "timestamps": parameters.flag.saying(
        "Each line begins with its time (UTC) and its stream; not together with `follow`.", default=False
    ),
    "tail": parameters.whole_number(0, MOST_LINES).saying("Only so many lines, the last."),
    "follow": parameters.flag.saying(
        "Server-sent events, into the next attempts, until the run has ended.", default=False
    ),
}
HEADERS: dict[str, Reads[Any]] = {
    "Range": Reads(lambda value, _: read_range(value), {"type": "string"}).saying(
        "`bytes=0-999`: a part of the output, where neither `tail` nor `timestamps` is asked for; what is no"
        " range of bytes is left out of account.",
        examples=["bytes=0-999"],
    ),
    "Last-Event-ID": Reads(
        lambda value, _: read_place(value),
        {"type": "string", "pattern": "^[0-9]{1,5}-[0-9]{1,9}-[0-9]{1,18}(-end)?$"},
    ).saying("With `follow`: go on behind this event."),
}
_ATTEMPT = {"Punctual-Attempt": "Of which attempt it is."}
WHOLE = Answer(
    {"type": "string"},
    "The output, as text; with `follow`, events: `data` is an object of `attempt`, `from` and `to` (bytes)"
    " and `text`; the last event is `end`.",
    _ATTEMPT,
    media_types=("text/plain", "text/event-stream"),
)
PART = Answer(
    {"type": "string"},
    "A part of the output.",
    {**_ATTEMPT, "Content-Range": "Which bytes of how many."},
    media_types=("text/plain",),
)


class ExecutionLogs(RestView):
    in_path = EXECUTION_ID

    @documented(
        "The output of a run",
        query=PARAMETERS,
        takes=HEADERS,
        answers={200: WHOLE, 206: PART, 204: None},
        errors=(416,),
    )
    def get(self, request: Request, execution_id: str) -> HttpResponse | StreamingHttpResponse:
        """What one attempt wrote: whole, the last lines, a range of bytes, or live. 404: it has not begun."""
        query = self.query
        execution = find_execution(parameters.identity(execution_id), self.user)
        if query.get("follow"):
            return follow(request._request, execution, _place(execution, query, request), self.user)
        attempt = query.get("attempt") or latest_attempt(execution)
        asked = read_range(request.headers.get("Range", ""))
        if asked is not None and not query.keys() & {"tail", "timestamps"}:
            return _part(execution, attempt, asked)
        pieces = read_log(
            execution, attempt, timestamps=query.get("timestamps", False), tail=query.get("tail")
        )
        return StreamingHttpResponse(
            pieces, content_type="text/plain; charset=utf-8", headers=_headers(attempt)
        )


def _place(execution: Execution, query: Mapping[str, Any], request: Request) -> Place:
    """Where to follow from. NotFound: an attempt that there has not been."""
    if "timestamps" in query:
        raise InvalidFields({"timestamps": ["Not together with follow=true."]})
    if last := request.headers.get("Last-Event-ID", ""):
        place = read_place(last)
    else:
        attempt = query.get("attempt") or begun_attempt(execution)
        lines = query.get("tail")
        place = Place(attempt) if lines is None else place_of_tail(execution, attempt, lines)
    if place.attempt > execution.attempt:
        raise NotFound(f"The execution {execution.id} has had no attempt {place.attempt}.")
    return place


def _part(execution: Execution, attempt: int, asked: ByteRange) -> HttpResponse | StreamingHttpResponse:
    found = read_log_range(execution, attempt, asked)
    if found.begin == found.end:
        return problem(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            f"The output has {found.total} bytes.",
            headers={"Content-Range": f"bytes */{found.total}"},
        )
    headers = {
        **_headers(attempt),
        "Content-Range": f"bytes {found.begin}-{found.end - 1}/{found.total}",
        "Content-Length": str(found.end - found.begin),
    }
    return StreamingHttpResponse(
        found.pieces,
        status=HTTPStatus.PARTIAL_CONTENT,
        content_type="text/plain; charset=utf-8",
        headers=headers,
    )


def _headers(attempt: int) -> dict[str, str]:
    return {"Punctual-Attempt": str(attempt), "Cache-Control": "no-store", "Accept-Ranges": "bytes"}
