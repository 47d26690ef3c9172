"""How often one address may try to log in, under whatever names: PUNCTUAL_LOGIN_RATE a minute.

django-axes locks one name at one address; who tries one password under many names never meets that lock.
"""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.utils.deprecation import MiddlewareMixin

from executions.rates import default_rates

LOGIN = "/admin/login/"


class LoginRate(MiddlewareMixin):
    """Before the body is read and any password is hashed."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.method != "POST" or request.path != LOGIN:
            return None
        who = f"login-{request.META.get('REMOTE_ADDR', '')}"
        wait_s = default_rates().wait_s(who, settings.PUNCTUAL_LOGIN_RATE)
        if wait_s is None:
            return None
        seconds = max(1, round(wait_s))
        text = loader.render_to_string("login_rate.html", {"seconds": seconds})
        headers = {"Retry-After": str(seconds), "Cache-Control": "no-store"}
        return HttpResponse(text, status=HTTPStatus.TOO_MANY_REQUESTS, headers=headers)
