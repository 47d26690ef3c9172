"""``Authorization: Bearer …`` (or ``Token …``): the user of a token, who may do no more than its scope."""

from __future__ import annotations

from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from access.models import ApiToken
from access.tokens import BadToken, token_by_text
from scheduler_project.kernel.clock import utcnow

SCHEMES = ("bearer", "token")
CHALLENGE = 'Bearer realm="api"'
"""What is asked of who comes without a token (WWW-Authenticate)."""


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """None where there is no such header. AuthenticationFailed where it lets nobody in."""
        scheme, *rest = get_authorization_header(request).decode("latin-1").split(" ")
        if scheme.lower() not in SCHEMES:
            return None
        if len(rest) != 1 or not rest[0]:
            raise AuthenticationFailed("One token is needed: Authorization: Bearer …, without blanks in it.")
        try:
            token = token_by_text(rest[0], utcnow())
        except BadToken as error:
            raise AuthenticationFailed(error.message) from error
        user = token.user
        user.token, user.token_scope = token, token.level  # type: ignore[attr-defined]  # see access/policy.py
        return user, token

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE
