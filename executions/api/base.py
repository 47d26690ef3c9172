"""What every view of REST has: strict bodies, JSON answers whatever the Accept header says, pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.parameters import cursor_text
from executions.api.parsing import StrictJSONParser
from executions.policy import User
from scheduler_project.kernel.errors import InvalidFields, complaints

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


class TokenAuthentication(authentication.TokenAuthentication):
    """``Authorization: Token …``; a text that no database can hold is no token."""

    def authenticate_credentials(self, key: str) -> Any:
        if "\0" in key:
            raise AuthenticationFailed("Invalid token.")
        return super().authenticate_credentials(key)


class RestView(APIView):
    # The first one names the scheme of a 401.
    authentication_classes = [TokenAuthentication, authentication.SessionAuthentication]
    parser_classes = [StrictJSONParser]
    content_negotiation_class = OneFormat

    @property
    def user(self) -> User:
        return self.request.user

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that was sent; empty where nothing was."""
        return dict(cast("dict[str, Any]", self.request.data))


def require_empty(body: dict[str, Any]) -> None:
    """For calls that take nothing yet: a field that would be ignored is refused."""
    if body:
        raise InvalidFields(complaints(body, lambda _: "This call takes no fields."))


def page(request: Request, results: Sequence[dict[str, Any]], *, more: bool) -> Response:
    """A page of a list: as many of ``results`` as MAX_PAGE_BYTES hold, and at least one.

    ``next`` begins behind the last of them, where that is not all; ``more``: there are others after these.
    """
    shown = _fitting(results)
    address = None
    if more or len(shown) < len(results):
        query = request.query_params.copy()
        query["cursor"] = cursor_text(UUID(shown[-1]["id"]))
        address = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
    return Response({"results": shown, "next": address})


def _fitting(results: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    total = 0
    for number, result in enumerate(results):
        total += len(json.dumps(result, ensure_ascii=False).encode())
        if total > MAX_PAGE_BYTES and number:
            return results[:number]
    return results
