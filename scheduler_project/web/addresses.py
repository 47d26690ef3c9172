"""Who is really there, behind proxies: REMOTE_ADDR is made the client's address, once, for all that read it.

A proxy appends the address that it was called from to ``X-Forwarded-For``; whatever stands further to the
left anybody may have written. So the client is the PUNCTUAL_PROXIES-th entry from the right, and where
there are no trusted proxies (the default) or fewer entries than proxies, the header says nothing.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from scheduler_project.kernel.addresses import plain_address


class RealAddress(MiddlewareMixin):
    """The first of the middleware: throttles, locks of logins and the audit trail read REMOTE_ADDR."""

    def process_request(self, request: HttpRequest) -> None:
        forwarded = request.headers.get("X-Forwarded-For", "")
        if found := forwarded_address(forwarded, settings.PUNCTUAL_PROXIES):
            request.META["REMOTE_ADDR"] = found


def forwarded_address(forwarded: str, proxies: int) -> str | None:
    """The address that the outermost of so many trusted proxies was called from; None: nobody says so."""
    entries = forwarded.split(",")
    if not 0 < proxies <= len(entries):
        return None
    return plain_address(_without_port(entries[-proxies].strip()))


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from; None where that has no address, such as a socket of this machine."""
    return plain_address(request.META.get("REMOTE_ADDR", ""))


def _without_port(entry: str) -> str:
    """``192.0.2.1:4711`` and ``[2001:db8::1]:4711`` are written by some proxies."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
