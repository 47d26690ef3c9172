"""REST of tokens: a user's own; all, for a superuser."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.levels import SCOPES
from access.models import ApiToken
from access.policy import Forbidden, User
from access.tokens import (
    MAX_NAME,
    TokenRequest,
    create_token,
    find_token,
    no_owner,
    owner_called,
    revoke_token,
    visible_tokens,
)
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.bodies import instant, text
from executions.api.documenting import Answer, Body, documented
from executions.api.presentation import time_text
from executions.api.reads import Reads, or_null, reads
from executions.api.shapes import page_of
from jobs.api.fields import LINE
from scheduler_project.kernel.clock import utcnow


class TokenShown(serializers.Serializer[Any]):
    """A token for REST. Its text is shown once, when it is made."""

    id = serializers.UUIDField(help_text="What it is called here.")
    name = serializers.CharField(help_text="What it is for.")
    user = serializers.CharField(help_text="Whose rights it carries: the user's name.")
    prefix = serializers.CharField(help_text="How its text begins.")
    scope = serializers.ChoiceField(list(SCOPES), help_text="The most that it may do.")
    createdAt = serializers.DateTimeField(help_text="When it was made, UTC.")
    expiresAt = serializers.DateTimeField(
        allow_null=True, help_text="Until when it counts, UTC; null: for ever."
    )
    revokedAt = serializers.DateTimeField(
        allow_null=True, help_text="Since when it counts no more, UTC; null: it was not revoked."
    )
    lastUsedAt = serializers.DateTimeField(
        allow_null=True, help_text="When it was last used, UTC, exact to a minute; null: never."
    )


class TokenMade(TokenShown):
    """A token that was just made, with its text."""

    token = serializers.CharField(
        help_text="Its text, for `Authorization: Bearer …`. Keep it: it is not shown again."
    )


TokenPage = page_of(TokenShown, "TokenPage")
PAGE: dict[str, parameters.Reader] = {
    "limit": parameters.limit.saying("How many a page holds.", default=parameters.DEFAULT_LIMIT),
    "cursor": parameters.cursor.saying("Where the page begins: from `next`."),
}
FIELDS: dict[str, Reads[Any]] = {
    "name": reads(type="string", pattern=LINE, maxLength=MAX_NAME)(text.read).saying(
        "What it is for; one name a user, among those that are not revoked."
    ),
    "scope": reads(type="string", enum=list(SCOPES))(text.read).saying(
        "The most that it may do: `read`; `operate`, which is run, cancel, pause and resume too; `edit`,"
        " which is all that its user may do."
    ),
    "expiresAt": or_null(instant).saying("Until when it counts; null or left out: for ever."),
    "user": text.saying(
        "Whose it is to be: a user's name. Left out: the caller's own. Only superusers make others'."
    ),
}
TOKEN = Body("Token", "A token to make.", FIELDS, required=("name", "scope"))
MADE = Answer(TokenMade, "It is made, and this once its text is shown.", {"Location": "Its address."})


class TokenList(RestView):
    @documented("Tokens", query=PAGE, answers={200: TokenPage})
    def get(self, request: Request) -> Response:
        """The caller's own, also those that count no more; a superuser sees all."""
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        tokens = visible_tokens(self.user).order_by("id")
        if after := self.query.get("cursor"):
            tokens = tokens.filter(id__gt=after)
        found = list(tokens[: limit + 1])
        return page(request, [token_json(token) for token in found[:limit]], more=len(found) > limit)

    @documented("Make a token", body=TOKEN, answers={201: MADE}, errors=(409,))
    def post(self, request: Request) -> Response:
        """A request that comes with a token makes none that may do more or lasts longer. 409: the name is
        taken."""
        asked = TokenRequest(self.given["name"], self.given["scope"], self.given.get("expiresAt"))
        made = create_token(_owner(self.given.get("user"), self.user), asked, self.user, utcnow())
        headers = {"Location": f"{request.path}/{made.token.id}", "Cache-Control": "no-store"}
        return Response(
            {**token_json(made.token), "token": made.text}, status=HTTPStatus.CREATED, headers=headers
        )


class TokenDetail(RestView):
    in_path = {
        "token_id": reads(type="string", format="uuid")(parameters.uuid.read).saying("The token's id.")
    }

    @documented("One token", answers={200: TokenShown})
    def get(self, request: Request, token_id: str) -> Response:
        """All of it but its text, which nobody has any more."""
        return Response(token_json(find_token(parameters.identity(token_id), self.user)))

    @documented("Revoke a token", answers={204: None})
    def delete(self, request: Request, token_id: str) -> Response:
        """It counts no more, and stays in the list. Twice is once."""
        revoke_token(find_token(parameters.identity(token_id), self.user), self.user, utcnow())
        return Response(status=HTTPStatus.NO_CONTENT)


def token_json(token: ApiToken) -> dict[str, Any]:
    return {
        "id": str(token.id),
        "name": token.name,
        "user": token.user.get_username(),
        "prefix": token.prefix,
        "scope": token.scope,
        "createdAt": time_text(token.created_at),
        "expiresAt": time_text(token.expires_at),
        "revokedAt": time_text(token.revoked_at),
        "lastUsedAt": time_text(token.last_used_at),
    }


def _owner(name: str | None, user: User) -> User:
    if name is None:
        return user
    found = owner_called(name, user)
    if found is None:
        raise Forbidden(no_owner(name))
    return found
