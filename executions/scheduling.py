"""From the database into the window: what has just been committed and is due soon."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from uuid import UUID

from django.conf import settings
from django.db import transaction

from executions.bus.topology import may_lose_deliveries
from executions.claims import Attempt, heard
from executions.entries import Entry
from executions.models import RunSpec
from executions.pools import leave_lines
from executions.runspecs import canonical_json
from executions.store import StoreUnavailable, default_store
from executions.window import SLACK, Window
from scheduler_project.kernel.clock import utcnow

logger = logging.getLogger(__name__)

BODIES_KEPT = 20_000
RETURNED_WITHIN = timedelta(hours=1)


class Push:
    """What became of a push. ``lost``: Redis did not answer; False too while the commit is still to come."""

    lost = False


def push_due_soon(entries: Sequence[Entry], now: datetime) -> Push:
    """Add the entries that are due inside the window, once the outermost transaction has committed.

    A run that began before its row can be seen would report to nobody. Where Redis is away
    nothing is lost: the overdue sweep finds the rows.
    """
    push = Push()
    soon = [entry for entry in entries if entry.due <= window_horizon(now)]
    if soon:
        transaction.on_commit(partial(_push, soon, push))
    return push


def window_horizon(now: datetime) -> datetime:
    """What is due until then may be in the window."""
    return now + settings.PUNCTUAL_WINDOW + SLACK


def _push(soon: Sequence[Entry], push: Push) -> None:
    try:
        Window(default_store()).add(soon, spec_bodies({entry.spec_id for entry in soon}))
    except StoreUnavailable as error:
        push.lost = True
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
        window.forbid(*execution_ids)
        leave_lines(window, execution_ids, utcnow())
    except StoreUnavailable as error:
        logger.warning("tombstones_late", extra={"runs": len(execution_ids), "error": error.message})


def outcomes_heard(attempts: Collection[Attempt]) -> None:
    """After the commit, let go of the claims of attempts that have ended; they end later by themselves."""
    if attempts:
        transaction.on_commit(partial(_outcomes_heard, attempts))


def _outcomes_heard(attempts: Collection[Attempt]) -> None:
    try:
        heard(default_store(), attempts, _kept_after())
    except StoreUnavailable as error:
        logger.warning("claims_left_to_end", extra={"runs": len(attempts), "error": error.message})


def _kept_after() -> timedelta:
    """How long an outcome keeps duplicates out once it is recorded.

    kombu's Redis transport gives what a worker had in hand when it died to another one when it finds the
    time: under load minutes after its visibility timeout.
    """
    kept = 2 * settings.PUNCTUAL_ENQUEUE_TIMEOUT
    return max(kept, RETURNED_WITHIN) if may_lose_deliveries(settings.BROKER_URL) else kept


class _Bodies:
    """RunSpecs that were read lately: they never change, so each is read and written out once a process."""

    def __init__(self) -> None:
        self._known: dict[UUID, bytes] = {}
        self._lock = threading.Lock()

    def find(self, spec_ids: Collection[UUID]) -> dict[UUID, bytes]:
        with self._lock:
            found = {spec_id: self._known[spec_id] for spec_id in spec_ids if spec_id in self._known}
        missing = set(spec_ids) - found.keys()
        if missing:
            rows = RunSpec.objects.filter(id__in=missing).values_list("id", "body")
            read = {spec_id: canonical_json(body) for spec_id, body in rows}
            self._remember(read)
            found.update(read)
        return found

    def _remember(self, read: dict[UUID, bytes]) -> None:
        with self._lock:
            self._known.update(read)
            for oldest in list(islice(self._known, max(0, len(self._known) - BODIES_KEPT))):
                del self._known[oldest]


_BODIES = _Bodies()


def spec_bodies(spec_ids: Collection[UUID]) -> dict[UUID, bytes]:
    """The canonical JSON of each RunSpec."""
    return _BODIES.find(spec_ids)
