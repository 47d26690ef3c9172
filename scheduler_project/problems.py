"""Every error that REST answers with, as RFC 9457 problem details (``application/problem+json``).

One table maps the errors of the kernel, of Django and of DRF to a status; what is in none of
them is our own fault: 500 with a reference that the log has too, and no internals. Django's
own error handlers (``handler404`` and so on) come through here as well; below ``/api/`` they
answer with a problem, elsewhere with Django's page.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db.utils import InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.request import UnreadablePostError
from django.template import loader
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import APIException, Throttled

from access.policy import Forbidden
from scheduler_project.kernel.errors import (
    Conflict,
    InvalidFields,
    InvalidValue,
    NotFound,
    Outdated,
    RetryableError,
)

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
API = "/api/"
UNKNOWN_ADDRESS = (
    "There is nothing at this address. The API's lists are /api/v1/jobs and /api/v1/executions;"
    " its addresses do not end in a slash."
)

_STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (InvalidFields, HTTPStatus.BAD_REQUEST),
    (InvalidValue, HTTPStatus.BAD_REQUEST),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (Outdated, HTTPStatus.PRECONDITION_FAILED),
    (Http404, HTTPStatus.NOT_FOUND),
    (PermissionDenied, HTTPStatus.FORBIDDEN),
    (RequestDataTooBig, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (SuspiciousOperation, HTTPStatus.BAD_REQUEST),
    (UnreadablePostError, HTTPStatus.BAD_REQUEST),
)
_UNAVAILABLE = (RetryableError, OperationalError, InterfaceError, InternalError)  # the last: read-only


def problem(
    status: int,
    detail: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> JsonResponse:
    """A problem document. ``more``: members of its own, such as ``errors`` or ``reference``."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": int(status)}
    if detail:
        body["detail"] = detail
    return JsonResponse({**body, **more}, status=int(status), headers=headers, content_type=CONTENT_TYPE)


def handle_exception(error: Exception, context: Mapping[str, Any]) -> HttpResponseBase:
    """DRF's EXCEPTION_HANDLER: the answer to any error of a view."""
    if isinstance(error, APIException):
        return _from_drf(error)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return problem(status, _detail(error), **_members(error))
    request = context.get("request")
    if isinstance(error, _UNAVAILABLE):
        return _unavailable(error, getattr(request, "path", ""))
    return _our_fault(error, getattr(request, "path", ""))


def _from_drf(error: APIException) -> HttpResponse:
    if isinstance(error, Throttled):
        return _too_many(max(1, getattr(error, "wait", None) or 1))
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait_s := getattr(error, "wait", None):
        headers["Retry-After"] = str(max(1, round(wait_s)))
    return problem(error.status_code, str(error.detail), headers=headers)


def _too_many(wait_s: float) -> HttpResponse:
    return problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"There were too many requests from you in the past minute. The next one may come in {wait_s:.0f} s.",
        headers={"Retry-After": f"{wait_s:.0f}"},
    )


def _detail(error: Exception) -> str:
    if isinstance(error, InvalidFields):
        return "Some fields cannot be accepted."
    text = str(error)
    return text if isinstance(error, Conflict | Forbidden | InvalidValue | NotFound | Outdated) else ""


def _members(error: Exception) -> dict[str, Any]:
    if isinstance(error, InvalidFields):
        return {"errors": error.errors}
    if isinstance(error, InvalidValue) and error.field:
        return {"errors": {error.field: [error.message]}}
    return {}


def _unavailable(error: Exception, path: str) -> HttpResponse:
    logger.warning("request_unavailable", extra={"path": path, "error": str(error).strip()})
    return problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "A part that this request needs does not answer. Try again in a few seconds.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


def _our_fault(error: BaseException | None, path: str) -> HttpResponse:
    reference = str(uuid.uuid4())
    logger.error("request_failed", extra={"reference": reference, "path": path}, exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "This is a fault of the server. Its log has the details under this reference.",
        reference=reference,
    )


def of_api(request: HttpRequest) -> bool:
    return request.path.startswith(API)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    if not of_api(request):
        return defaults.bad_request(request, exception)
    return problem(HTTPStatus.BAD_REQUEST, "The request cannot be understood.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    return (
        problem(HTTPStatus.FORBIDDEN) if of_api(request) else defaults.permission_denied(request, exception)
    )


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404"""
    return unknown_address(request) if of_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500"""
    error = sys.exception()
    if not of_api(request):
        return _page_unavailable() if isinstance(error, _UNAVAILABLE) else defaults.server_error(request)
    if isinstance(error, _UNAVAILABLE):
        return _unavailable(error, request.path)
    return _our_fault(error, request.path)


def _page_unavailable() -> HttpResponse:
    """Without the request: who asks is in the database, which may be what is away."""
    text = loader.render_to_string("503.html")
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return HttpResponse(text, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)


@csrf_exempt
def unknown_address(_request: HttpRequest) -> HttpResponse:
    """The view of every address below /api/ that is no other's."""
    return problem(HTTPStatus.NOT_FOUND, UNKNOWN_ADDRESS)
