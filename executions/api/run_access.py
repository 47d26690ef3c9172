"""Who calls with the token of a run: the run itself, which may do this and that with itself alone."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.conf import settings
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from access.authentication import CHALLENGE, SCHEMES
from access.policy import User
from executions.listing import find_execution
from executions.models import Execution
from executions.run_tokens import PREFIX, RunIdentity, read_run_token
from scheduler_project.kernel.errors import NotFound


class RunTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer …`` or ``Token …`` with the PUNCTUAL_RUN_TOKEN of a run."""

    def authenticate(self, request: Request) -> tuple[Any, str] | None:
        words = get_authorization_header(request).decode("latin-1").split()
        if len(words) != 2 or words[0].lower() not in SCHEMES or not words[1].startswith(PREFIX):
            return None
        identity = read_run_token(settings.SECRET_KEY, words[1])
        if identity is None:
            raise AuthenticationFailed("This is no token of a run.")
        return identity, words[1]

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def run_itself(request: Request) -> RunIdentity | None:
    """The run that calls; None where a user does."""
    caller = cast("User | RunIdentity", request.user)
    return caller if isinstance(caller, RunIdentity) else None


def run_for(request: Request, execution_id: UUID) -> Execution:
    """The run, where its own token asks for it or a user who may see it. NotFound: any other."""
    caller = run_itself(request)
    if caller is None:
        return find_execution(execution_id, cast("User", request.user))
    found = Execution.objects.select_related("spec").filter(id=execution_id).first()
    if found is None or caller.execution_id != execution_id:
        raise NotFound(f"There is no execution {execution_id}.")
    return found
