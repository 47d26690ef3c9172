"""The answer to a login that is refused because too many failed before (django-axes)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template import loader

from scheduler_project.kernel.durations import format_duration


def locked_out(_request: HttpRequest, *_about: Any) -> HttpResponse:
    """AXES_LOCKOUT_CALLABLE. It says the same whether or not there is such a user."""
    lockout = settings.PUNCTUAL_LOGIN_LOCKOUT
    text = loader.render_to_string("429.html", {"lockout": format_duration(lockout)})
    headers = {"Retry-After": str(round(lockout.total_seconds())), "Cache-Control": "no-store"}
    return HttpResponse(text, status=HTTPStatus.TOO_MANY_REQUESTS, headers=headers)
