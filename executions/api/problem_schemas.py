"""The shapes of errors, for the schema: as scheduler_project/problems.py writes them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework import serializers

CONTENT_TYPE = "application/problem+json"


class Problem(serializers.Serializer[Any]):
    """An error (RFC 9457)."""

    type = serializers.CharField(
        help_text="Always `about:blank`: the status says what kind of problem it is."
    )
    title = serializers.CharField(help_text="The status in words.")
    status = serializers.IntegerField(help_text="The HTTP status again.")
    detail = serializers.CharField(help_text="What is wrong, in a sentence for people.", required=False)


class InvalidRequest(Problem):
    """A request that cannot be accepted, with what is wrong with each of its fields."""

    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="By the name of the field, parameter or header, and by its path where it is an inner one"
        " (`container.resources.memory.limit`): sentences that name the value and what is allowed.",
    )


class ServerFault(Problem):
    """A fault of the server."""

    reference = serializers.UUIDField(
        required=False, help_text="Which entry of the server's log has the details."
    )


REASONS: dict[int, str] = {
    400: "A parameter, a header or a field is unknown, missing or not allowed.",
    401: "There is no user: the token is missing, wrong, revoked or has expired.",
    403: "The user may not do this.",
    404: "There is no such thing, or the user may not see it.",
    409: "It does not fit what is there now.",
    412: "It is not any more as the `If-Match` header says: somebody else has changed it.",
    413: "The body is larger than 2 MiB.",
    415: "The body is not `application/json`.",
    416: "The range begins behind the end.",
    429: "Too many requests: try again after `Retry-After`.",
    500: "A fault of the server.",
    503: "A part that this needs does not answer: try again after `Retry-After`.",
}
_SHAPES: dict[int, type[Problem]] = {400: InvalidRequest, 500: ServerFault}


def shape_of(status: int) -> type[Problem]:
    return _SHAPES.get(status, Problem)


def reason_of(status: int) -> str:
    return REASONS.get(status) or HTTPStatus(status).phrase
