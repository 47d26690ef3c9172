"""The sweep: whatever should have been looked at by now (``check_at`` has passed), whatever its state.

claimed       somebody runs it, or has finished it: looked at again after a lease. Finished, and
              not recorded within the enqueue time-out: the outcome was lost on its way (a
              consumer of kombu's Redis transport was killed with it in hand) and is said again.
in flight     the dispatcher's lease decides.
Active        and claimed by nobody: its worker is gone; it is sent again with REATTACH.
Waiting       sent, and not claimed yet: looked at again after the enqueue time-out. Not sent:
              a push or a publish was lost; it is pushed now.
missed        Waiting for its first start by more than the grace: nothing was there to start it (an
              outage). The misfire policy of its job decides (jobs/outages.py).

Who was asked to stop has its tombstone left again.

Lost publish, lost worker and retry delay are all this one mechanism.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from beat.ownership import Ownership
from beat.queries import SWEEPS
from executions.bus.publishing import EventPublisher
from executions.claims import KnownClaim, known_claims
from executions.database import database_available
from executions.entries import Entry, Flag
from executions.events import decode
from executions.redirection import CHANGE_LASTS
from executions.scheduling import spec_bodies
from executions.states import State
from executions.transitions import postpone
from executions.window import Whereabouts, Window
from jobs.outages import MissedRun, settle_missed
from scheduler_project.kernel.clock import EPOCH, from_millis
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PAGE = 1000
PERIOD_S = 0.5
GRACE = timedelta(milliseconds=500)
_FIRST = UUID(int=0)


class OverdueRow(NamedTuple):
    """A row of the query ``overdue``; ``unsent``: a scheduled run of which nothing is known to have left."""

    id: UUID
    spec_id: UUID
    attempt: int
    check_at: datetime
    generation: int
    state: str
    cancel_requested_at: datetime | None
    job_id: UUID
    scheduled_for: datetime
    unsent: bool


@dataclass(frozen=True, slots=True)
class SweepTimes:
    enqueue_timeout: timedelta
    run_lease: timedelta
    misfire_grace: timedelta


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a row.

    ``push`` it with these flags, look again at ``next_check``, ``forbid`` it (leave its tombstone),
    say its outcome again (``repeat``: a message of events), or settle it as ``missed``.
    """

    push: Flag | None = None
    next_check: datetime | None = None
    forbid: bool = False
    repeat: bytes = b""
    missed: bool = False


def judge(
    row: OverdueRow, claim: KnownClaim | None, place: Whereabouts, now: datetime, times: SweepTimes
) -> Verdict:
    """A row whose ``check_at`` has passed (pure)."""
    forbid = row.cancel_requested_at is not None
    if claim is not None and claim.attempt >= row.attempt:
        return replace(_judge_claimed(claim, now, times), forbid=forbid)
    if place.in_flight:
        return Verdict(forbid=forbid)
    if row.state == State.ACTIVE:
        return Verdict(push=Flag.REATTACH, next_check=now + 2 * times.run_lease, forbid=forbid)
    if place.sent_at is not None and now < place.sent_at + times.enqueue_timeout:
        return Verdict(next_check=place.sent_at + times.enqueue_timeout)
    if row.unsent and now - row.check_at > times.misfire_grace:
        return Verdict(missed=True)
    return Verdict(push=Flag.NONE)


def _judge_claimed(claim: KnownClaim, now: datetime, times: SweepTimes) -> Verdict:
    """Somebody runs it, or has finished it and the recorder has not heard of it yet."""
    if claim.outcome and now - decode(claim.outcome)[0].at >= times.enqueue_timeout:
        return Verdict(next_check=now + times.enqueue_timeout, repeat=claim.outcome)
    return Verdict(next_check=now + times.run_lease)


class Sweeper:
    def __init__(
        self, window: Window, ownership: Ownership, events: EventPublisher, times: SweepTimes
    ) -> None:
        self._window = window
        self._ownership = ownership
        self._events = events
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
            cursor.execute(SWEEPS["overdue"], [list(shards), until, *after, until - CHANGE_LASTS, PAGE])
            return [OverdueRow(*row) for row in cursor.fetchall()]

    def _sweep(self, rows: Sequence[OverdueRow], now: datetime) -> None:
        places = self._window.locate([_entry(row) for row in rows])
        claims = known_claims(self._window.store, [row.id for row in rows])
        verdicts = [
            self._verdict(row, claim, place, now)
            for row, claim, place in zip(rows, claims, places, strict=True)
        ]
        judged = list(zip(rows, verdicts, strict=True))
        self._carry_out(judged, now)
        if missed := [_missed(row) for row, verdict in judged if verdict.missed]:
            settle_missed(missed, now)

    def _verdict(
        self, row: OverdueRow, claim: KnownClaim | None, place: Whereabouts, now: datetime
    ) -> Verdict:
        """A row that cannot be judged is looked at again later, and holds up no other."""
        try:
            return judge(row, claim, place, now, self._times)
        except InvalidValue as error:
            logger.error("row_not_judged", extra={"execution": row.id, "error": error.message})
            return Verdict(next_check=now + self._times.run_lease)

    def close(self) -> None:
        self._events.close()

    def _carry_out(self, judged: Sequence[tuple[OverdueRow, Verdict]], now: datetime) -> None:
        """The next look is noted first: PostgreSQL may take no writes, and all would be done every sweep."""
        with transaction.atomic():
            postpone([(row.id, row.check_at, v.next_check) for row, v in judged if v.next_check is not None])
        late = now - self._times.misfire_grace / 2
        entries = [
            _entry(row, verdict.push, now if row.check_at < late else row.check_at)
            for row, verdict in judged
            if verdict.push is not None
        ]
        self._window.add(entries, spec_bodies({entry.spec_id for entry in entries}))
        for row, verdict in judged:
            if verdict.forbid:
                self._window.forbid(row.id)
            if verdict.repeat:
                logger.warning("outcome_repeated", extra={"execution": row.id, "attempt": row.attempt})
                self._events.publish(verdict.repeat)
        if entries:
            logger.warning("overdue_pushed", extra=_counts(judged))


def _entry(row: OverdueRow, flags: Flag = Flag.NONE, due: datetime | None = None) -> Entry:
    """Due when the row is: what waits its turn in a bucket already stays there once, and keeps its turn.

    But for what is so old that the window would not give it out.
    """
    return Entry(
        execution_id=row.id,
        spec_id=row.spec_id,
        attempt=row.attempt,
        due=due or row.check_at,
        generation=row.generation,
        flags=flags,
    )


def _missed(row: OverdueRow) -> MissedRun:
    return MissedRun(_entry(row), row.job_id, row.scheduled_for)


def _counts(judged: Sequence[tuple[OverdueRow, Verdict]]) -> dict[str, Any]:
    pushed = [verdict.push for _, verdict in judged if verdict.push is not None]
    return {"runs": len(pushed), "without_worker": sum(Flag.REATTACH in flags for flags in pushed)}
