"""Who acts now, in this thread: for what is noted where no user is handed down."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from scheduler_project.kernel.addresses import plain_address

NOBODY = "manage.py"


@dataclass(frozen=True, slots=True)
class Actor:
    """``address``: where the request came from; ``token``: the name of the token that it came with."""

    name: str = NOBODY
    user_id: int | None = None
    address: str | None = None
    token: str | None = None


_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class Acting(MiddlewareMixin):
    """Behind the authentication. Who asks is looked at only where something is noted."""

    def process_request(self, request: HttpRequest) -> None:
        _request.set(request)

    def process_response(self, _request_: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        _request.set(None)
        return response


def actor(user: Any = None) -> Actor:
    """``user``, or who is known to act; with what the request says of him."""
    request = _request.get()
    person = user or getattr(request, "user", None)
    token = getattr(request, "auth", None)
    return Actor(
        name=(person.get_username() if person else "") or NOBODY,
        user_id=getattr(person, "pk", None),
        address=plain_address(request.META.get("REMOTE_ADDR", "")) if request else None,
        token=getattr(token, "name", None),
    )
