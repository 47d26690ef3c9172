"""How often one may ask REST: a token or a user by PUNCTUAL_API_RATE, who is nobody by his address."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from executions.rates import default_rates


class RequestRate(BaseThrottle):
    """DRF asks it once a request may go on; what is refused before that counts in ``wait_of_refused_s``."""

    _wait_s: float | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        self._wait_s = default_rates().wait_s(*_account(request))
        return self._wait_s is None

    def wait(self) -> float | None:
        return self._wait_s


def wait_of_refused_s(request: Request) -> float | None:
    """Count a request that was nobody's; how long its address has to wait, in seconds, or None."""
    return default_rates().wait_s(*_account_of_address(request))


def _account(request: Request) -> tuple[str, int]:
    """What a request counts for, and how many a minute may."""
    if not request.user.is_authenticated:
        return _account_of_address(request)
    token = getattr(request.auth, "pk", None)
    who = f"user-{request.user.pk}" if token is None else f"token-{token}"
    return who, settings.PUNCTUAL_API_RATE


def _account_of_address(request: Request) -> tuple[str, int]:
    return f"address-{request.META.get('REMOTE_ADDR', '')}", settings.PUNCTUAL_API_RATE_ANONYMOUS
