"""By what a list of runs is narrowed and ordered, over REST and by ``manage.py executions list``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from executions.api import parameters
from executions.api.reads import Reads, reads
from executions.listing import Selection
from executions.pages import NEWEST, OLDEST, Order
from executions.states import Trigger
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown

LAST_ATTEMPT = 32767
ORDERS: dict[str, Order] = {"-scheduledFor": NEWEST, "scheduledFor": OLDEST}
_REASON = "[a-z][a-z0-9_]{0,63}"
_TRIGGERS = "|".join(Trigger)


@reads(type="string", pattern=f"^{_REASON}(,{_REASON}){{0,19}}$", examples=["failed,timed_out"])
def reasons(value: str, name: str) -> tuple[str, ...]:
    """Any word that a reason may be: a newer worker may know more of them than this web."""
    if not re.fullmatch(f"{_REASON}(,{_REASON}){{0,19}}", value):
        raise InvalidValue(
            f"{shown(value)} is not a reason, such as failed, or up to 20 with commas between.", field=name
        )
    return tuple(value.split(","))


@reads(type="string", pattern=f"^({_TRIGGERS})(,({_TRIGGERS}))*$")
def triggers(value: str, name: str) -> tuple[Trigger, ...]:
    try:
        return tuple(Trigger(item) for item in value.split(","))
    except ValueError:
        raise InvalidValue(f"{shown(value)} is not one of {', '.join(Trigger)}.", field=name) from None


@reads(type="string", enum=list(ORDERS))
def _ordering(value: str, name: str) -> Order:
    if value not in ORDERS:
        raise InvalidValue(f"{shown(value)} is not one of {', '.join(ORDERS)}.", field=name)
    return ORDERS[value]


FILTERS: dict[str, Reads[Any]] = {
    "status": parameters.states.saying("Only those in this state, or in one of several with commas between."),
    "reason": reasons.saying("Only those with this `reason`, or with one of several with commas between."),
    "trigger": triggers.saying("Only those that this asked for, or one of several with commas between."),
    "attempt": parameters.whole_number(1, LAST_ATTEMPT).saying("Only those whose latest attempt is this."),
    "from": parameters.instant.saying("Only those planned for then or later."),
    "to": parameters.instant.saying("Only those planned for before then."),
}
ordering = _ordering.saying(
    "By the planned time, the latest first (`-scheduledFor`) or the earliest: no index has another order.",
    default="-scheduledFor",
)


def selection_of(query: Mapping[str, Any], teams: frozenset[int] | None, job_id: UUID | None) -> Selection:
    """What the values of FILTERS select. InvalidFields: a span that ends before it begins."""
    since, until = query.get("from"), query.get("to")
    if since is not None and until is not None and since >= until:
        raise InvalidFields({"to": ["It is not later than `from`."]})
    return Selection(
        teams=teams,
        job_id=job_id,
        states=tuple(query.get("status") or ()),
        since=since,
        until=until,
        reasons=query.get("reason") or (),
        triggers=query.get("trigger") or (),
        attempt=query.get("attempt"),
    )
