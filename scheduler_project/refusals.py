"""Where Django's admin trusts a request too much: a value that cannot be meant is a 400, not our fault.

The lists of the admin hand any query parameter on as a look-up (``?created_at__year=99999``,
``?name=%00``), the forms and actions any id. What no column can hold shows only when Python or
PostgreSQL refuses it, far from the place that read it; hence here, for all pages at once. REST
reads its parameters itself (executions/api/parameters.py) and never comes through here.
"""

from __future__ import annotations

import logging
from traceback import extract_tb

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.utils import DataError
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from scheduler_project.problems import bad_request

logger = logging.getLogger(__name__)

ADMIN = "/admin/"
MOST_SAID = 500  # characters of an error, which repeats what was sent
FROM_OUTSIDE = (DataError, OverflowError, UnicodeError, ValidationError)


class RefuseUnusableValues(MiddlewareMixin):
    """The log has what was raised, and where: what is taken for nonsense may be a fault after all."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not request.path.startswith(ADMIN) or not _by_its_values(request, error):
            return None
        last = extract_tb(error.__traceback__)[-1]
        raised = {"error": repr(error)[:MOST_SAID], "raised_at": f"{last.filename}:{last.lineno}"}
        logger.warning("request_refused", extra={"path": request.path, **raised})
        return bad_request(request, error)


def _by_its_values(request: HttpRequest, error: Exception) -> bool:
    """A ValueError says less: it counts only where there were look-ups or chosen rows to be refused."""
    given = bool(request.GET) or ACTION_CHECKBOX_NAME in request.POST
    return isinstance(error, FROM_OUTSIDE) or (given and isinstance(error, ValueError))
