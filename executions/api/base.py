"""What every view of REST has: strict bodies, JSON answers whatever the Accept header says, pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from uuid import UUID

from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access.authentication import TokenAuthentication
from access.policy import User
from executions.api.parameters import cursor_text
from executions.api.parsing import StrictJSONParser
from executions.api.reads import Reads
from executions.api.throttles import wait_of_refused_s

MAX_PAGE_BYTES = 1 << 20


class OneFormat(BaseContentNegotiation):
    """Each address has one format. Logs are asked for with ``Accept: text/plain``, errors are problems."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        kind = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class RestView(APIView):
    # The first one names the scheme of a 401.
    authentication_classes = [TokenAuthentication, authentication.SessionAuthentication]
    parser_classes = [StrictJSONParser]
    content_negotiation_class = OneFormat
    in_path: ClassVar[Mapping[str, Reads[Any]]] = {}
    """What the names in the address stand for, for the schema."""
    query: Mapping[str, Any]
    """The query parameters, read as ``@documented`` says."""
    given: Any
    """The body, likewise."""

    @property
    def user(self) -> User:
        return self.request.user

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that was sent; empty where nothing was."""
        return dict(cast("dict[str, Any]", self.request.data))

    def handle_exception(self, exc: Exception) -> Response:
        """What is refused as nobody's counts for its address, which is told to wait at last."""
        if isinstance(exc, NotAuthenticated | AuthenticationFailed):
            wait_s = wait_of_refused_s(self.request)
            exc = exc if wait_s is None else Throttled(wait_s)
        return super().handle_exception(exc)


def page(
    request: Request,
    results: Sequence[dict[str, Any]],
    *,
    more: bool,
    cursors: Sequence[str] = (),
    then: UUID | None = None,
) -> Response:
    """A page of a list: as many of ``results`` as MAX_PAGE_BYTES hold, and at least one.

    ``next`` begins behind the last of them, where that is not all; ``more``: there are others after these.
    ``cursors``: of each result, where that is not its ``id``. ``then``: behind which place those are, where
    that is not the last result.
    """
    shown = _fitting(results)
    address = None
    if more or len(shown) < len(results):
        query = request.query_params.copy()
        if then is not None and len(shown) == len(results):
            query["cursor"] = cursor_text(then)
        else:
            query["cursor"] = cursors[len(shown) - 1] if cursors else cursor_text(UUID(shown[-1]["id"]))
        address = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
    return Response({"results": shown, "next": address})


def _fitting(results: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    total = 0
    for number, result in enumerate(results):
        total += len(json.dumps(result, ensure_ascii=False).encode())
        if total > MAX_PAGE_BYTES and number:
            return results[:number]
    return results
