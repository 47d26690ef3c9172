"""The sweep: whatever should have been looked at by now (``check_at`` has passed), whatever its state.

Waiting   in flight: its lease decides. Sent, but not recorded as queued or started yet: looked
          at again after the enqueue time-out. Neither: a push or a publish was lost; it is
          pushed now.
Active    somebody holds its claim: looked at again after a lease. Nobody: its worker is gone;
          it is sent again with REATTACH. Asked to stop: the tombstone is left again.

Lost publish, lost worker and retry delay are all this one mechanism.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from beat.ownership import Ownership
from beat.queries import SWEEPS
from executions.claims import claimed_attempts
from executions.database import database_available
from executions.entries import Entry, Flag
from executions.scheduling import spec_bodies
from executions.states import State
from executions.transitions import postpone
from executions.window import Whereabouts, Window
from scheduler_project.kernel.clock import EPOCH, from_millis

logger = logging.getLogger(__name__)

PAGE = 1000
PERIOD_S = 0.5
GRACE = timedelta(milliseconds=500)
_FIRST = UUID(int=0)


class OverdueRow(NamedTuple):
    """A row of the query ``overdue``."""

    id: UUID
    spec_id: UUID
    attempt: int
    check_at: datetime
    state: str
    queued_at: datetime | None
    cancel_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class SweepTimes:
    enqueue_timeout: timedelta
    run_lease: timedelta


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a row: ``push`` it with these flags, look again at ``next_check``, ``forbid`` it."""

    push: Flag | None = None
    next_check: datetime | None = None
    forbid: bool = False


def judge_waiting(found: Whereabouts, now: datetime, times: SweepTimes) -> Verdict:
    """A waiting row that is overdue (pure)."""
    if found.in_flight:
        return Verdict()
    if found.sent_at is not None and now < found.sent_at + times.enqueue_timeout:
        return Verdict(next_check=found.sent_at + times.enqueue_timeout)
    return Verdict(push=Flag.NONE)


def judge_active(
    row: OverdueRow, claimed: int | None, found: Whereabouts, now: datetime, times: SweepTimes
) -> Verdict:
    """An active row whose lease check is due (pure). ``claimed``: the attempt that Redis knows a claim of."""
    forbid = row.cancel_requested_at is not None
    if claimed is not None and claimed >= row.attempt:
        return Verdict(next_check=now + times.run_lease, forbid=forbid)
    if found.in_flight:
        return Verdict(forbid=forbid)
    return Verdict(push=Flag.REATTACH, next_check=now + 2 * times.run_lease, forbid=forbid)


class Sweeper:
    def __init__(self, window: Window, ownership: Ownership, times: SweepTimes) -> None:
        self._window = window
        self._ownership = ownership
        self._times = times

    def run_once(self) -> float:
        """Look at every overdue row of the owned shards once; the seconds until the next sweep."""
        shards = self._ownership.owned()
        if not shards:
            return PERIOD_S
        now = from_millis(self._window.store.now_ms())
        after: tuple[datetime, UUID] = (EPOCH, _FIRST)
        with database_available():
            while rows := self._page(shards, now - GRACE, after):
                self._sweep(rows, now)
                after = rows[-1].check_at, rows[-1].id
                if len(rows) < PAGE:
                    break
        return PERIOD_S

    def _page(self, shards: Sequence[int], until: datetime, after: tuple[datetime, UUID]) -> list[OverdueRow]:
        with connection.cursor() as cursor:
            cursor.execute(SWEEPS["overdue"], [list(shards), until, *after, PAGE])
            return [OverdueRow(*row) for row in cursor.fetchall()]

    def _sweep(self, rows: Sequence[OverdueRow], now: datetime) -> None:
        places = self._window.locate([(row.id, row.spec_id, row.attempt) for row in rows])
        claims = claimed_attempts(self._window.store, [row.id for row in rows])
        verdicts = [
            judge_waiting(place, now, self._times)
            if row.state == State.WAITING
            else judge_active(row, claimed, place, now, self._times)
            for row, place, claimed in zip(rows, places, claims, strict=True)
        ]
        self._carry_out(list(zip(rows, verdicts, strict=True)), now)

    def _carry_out(self, judged: Sequence[tuple[OverdueRow, Verdict]], now: datetime) -> None:
        entries = [_entry(row, verdict.push, now) for row, verdict in judged if verdict.push is not None]
        self._window.add(entries, spec_bodies({entry.spec_id for entry in entries}))
        for row, verdict in judged:
            if verdict.forbid:
                self._window.forbid(row.id)
        with transaction.atomic():
            postpone([(row.id, row.check_at, v.next_check) for row, v in judged if v.next_check is not None])
        if entries:
            logger.warning("overdue_pushed", extra=_counts(judged))


def _entry(row: OverdueRow, flags: Flag, now: datetime) -> Entry:
    return Entry(execution_id=row.id, spec_id=row.spec_id, attempt=row.attempt, due=now, flags=flags)


def _counts(judged: Sequence[tuple[OverdueRow, Verdict]]) -> dict[str, Any]:
    pushed = [verdict.push for _, verdict in judged if verdict.push is not None]
    return {"runs": len(pushed), "without_worker": sum(Flag.REATTACH in flags for flags in pushed)}
