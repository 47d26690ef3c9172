"""A token of a user, for tests that ask REST."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from access.policy import System
from access.tokens import TokenRequest, create_token
from scheduler_project.kernel.clock import utcnow


def token_of(user: User, scope: str = "edit", **fields: Any) -> str:
    """The text of a new token."""
    asked = TokenRequest(fields.pop("name", f"tests {scope}"), scope, **fields)
    return create_token(user, asked, System("tests"), utcnow()).text
