"""From the database into the window: what has just been committed and is due soon."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from executions.claims import heard
from executions.entries import Entry
from executions.models import RunSpec
from executions.runspecs import Spec
from executions.store import StoreUnavailable, default_store
from executions.window import SLACK, Window

logger = logging.getLogger(__name__)


def push_due_soon(entries: Sequence[Entry], now: datetime) -> None:
    """Add the entries that are due inside the window, once the outermost transaction has committed.

    A run that began before its row can be seen would report to nobody. Where Redis is away
    nothing is lost: the overdue sweep finds the rows.
    """
    soon = [entry for entry in entries if entry.due <= window_horizon(now)]
    if soon:
        transaction.on_commit(partial(_push, soon))


def window_horizon(now: datetime) -> datetime:
    """What is due until then may be in the window."""
    return now + settings.PUNCTUAL_WINDOW + SLACK


def _push(soon: Sequence[Entry]) -> None:
    try:
        Window(default_store()).add(soon, spec_bodies({entry.spec_id for entry in soon}))
    except StoreUnavailable as error:
        logger.warning("push_lost", extra={"runs": len(soon), "error": error.message})


def forbid(execution_ids: Sequence[UUID]) -> None:
    """Leave tombstones, after the commit: what is queued must not start, what runs must stop.

    Where Redis is away, the recorder leaves them again when it hears that such a run has begun.
    """
    if execution_ids:
        transaction.on_commit(partial(_forbid, execution_ids))


def _forbid(execution_ids: Sequence[UUID]) -> None:
    window = Window(default_store())
    try:
        for execution_id in execution_ids:
            window.forbid(execution_id)
    except StoreUnavailable as error:
        logger.warning("tombstones_late", extra={"runs": len(execution_ids), "error": error.message})


def outcomes_heard(execution_ids: Collection[UUID]) -> None:
    """After the commit, let go of the claims of attempts that have ended; they end later by themselves."""
    if execution_ids:
        transaction.on_commit(partial(_outcomes_heard, execution_ids))


def _outcomes_heard(execution_ids: Collection[UUID]) -> None:
    try:
        heard(default_store(), execution_ids, 2 * settings.PUNCTUAL_ENQUEUE_TIMEOUT)
    except StoreUnavailable as error:
        logger.warning("claims_left_to_end", extra={"runs": len(execution_ids), "error": error.message})


def spec_bodies(spec_ids: set[UUID]) -> dict[UUID, bytes]:
    """The canonical JSON of each RunSpec."""
    rows = RunSpec.objects.filter(id__in=spec_ids).values_list("id", "body")
    return {spec_id: Spec.from_json(body).canonical for spec_id, body in rows}
