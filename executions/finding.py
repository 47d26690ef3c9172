"""Executions by what people write: an id, or enough digits of its beginning."""

from __future__ import annotations

import re
from uuid import UUID

from access.policy import User, teams_seen_by
from executions.listing import find_execution
from executions.models import Execution
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.texts import shown

LEAST_DIGITS = 10
"""Twelve are the due time in milliseconds: ten leave a quarter of a second, and few rows to look at."""
_DIGITS = 32
_HEX = re.compile(r"[0-9a-f]{1,32}", re.ASCII)


def execution_called(text: str, user: User) -> Execution:
    """The one run that ``user`` may see and whose id is or begins with ``text``, with its spec.

    NotFound; InvalidValue where there are several, or ``text`` is too short to say which.
    """
    bounds = ids_that_begin(text, LEAST_DIGITS)
    if bounds is None:
        raise NotFound(
            f"There is no execution {shown(text)}: an id, or at least {LEAST_DIGITS} digits of its beginning,"
            " is needed."
        )
    rows = Execution.objects.filter(id__gte=bounds[0], id__lte=bounds[1])
    teams = teams_seen_by(user)
    if teams is not None:
        rows = rows.filter(owner_id__in=teams)
    found = list(rows.order_by("id").values_list("id", flat=True)[:2])
    if not found:
        raise NotFound(f"There is no execution {shown(text)}.")
    if len(found) > 1:
        raise InvalidValue(f"{shown(text)} begins the ids of several executions: give more digits.")
    return find_execution(found[0], user)


def ids_that_begin(text: str, least: int) -> tuple[UUID, UUID] | None:
    """The lowest and the highest id with this beginning; None where it is none, or shorter than ``least``."""
    digits = text.lower().replace("-", "")
    if len(digits) < least or not _HEX.fullmatch(digits):
        return None
    return UUID(digits.ljust(_DIGITS, "0")), UUID(digits.ljust(_DIGITS, "f"))
