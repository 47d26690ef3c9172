"""The sweep: whatever should have been looked at by now (``check_at`` has passed), whatever its state.

claimed       somebody runs it, or has finished it: looked at again when the claim ends. Finished, and
              not recorded within the enqueue time-out: the outcome was lost on its way (a
              consumer of kombu's Redis transport was killed with it in hand) and is said again.
in flight     the dispatcher's lease decides.
in line       it waits for a place in a pool: looked at again after three leases. Where Redis has lost
              the line it is pushed, and lines up anew.
Active        and claimed by nobody: its worker is gone; it is sent again with REATTACH, once. Again
              where that was not taken within the enqueue time-out, or where it waits for a worker of
              its engine and that engine is given up (executions/engines.py). Its places in pools are
              kept for it meanwhile, however long no worker is there.
Waiting       sent, and not claimed yet: looked at again after the enqueue time-out, and sent again then
              where a worker takes from its queue (it was lost there). Again after as long as it has waited by
              then (10 minutes at most): the queue may only be long. Where none does it lies in the queue, and
              more copies would only pile up. Not sent: a push or a publish was lost; it is pushed now.
              With a site it has begun, which nobody has recorded, and its worker is gone: as if Active.
missed        Waiting for its first start by more than the grace: nothing was there to start it (an
              outage). The misfire policy of its job decides (jobs/outages.py).

Who was asked to stop has its tombstone left again. Where it waits and nobody holds it, it is ended; if a
worker held it and is gone, what that may have said is awaited before, for the enqueue time-out.

Lost publish, lost worker and retry delay are all this one mechanism.
"""

from __future__ import annotations

import json
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
from executions.claims import KnownClaim, known_claims, sent_again
from executions.database import database_available
from executions.engines import Engines, Site, known_sites
from executions.entries import Entry, Flag
from executions.events import decode
from executions.folding import WAITS_LOOKED_AT
from executions.freshness import require_fresh
from executions.pools import LEASES, Pools, pools_of
from executions.presence import present_workers
from executions.redirection import CHANGE_LASTS
from executions.runspecs import Spec
from executions.scheduling import spec_bodies
from executions.services import end_cancelled
from executions.states import State
from executions.store import Store
from executions.transitions import postpone
from executions.window import Whereabouts, Window
from jobs.outages import MissedRun, settle_missed
from scheduler_project.kernel.clock import EPOCH, from_millis, monotonic
from scheduler_project.kernel.errors import InvalidValue

logger = logging.getLogger(__name__)

PAGE = 1000
PERIOD_S = 0.5
GRACE = timedelta(milliseconds=500)
LONGEST_PAUSE = timedelta(minutes=10)
_FIRST = UUID(int=0)


class OverdueRow(NamedTuple):
    """A row of the query ``overdue``; ``unsent``: a scheduled run of which nothing is known to have left;
    ``queued_at``: when its attempt was first sent, if that is known."""

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
    queued_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SweepTimes:
    enqueue_timeout: timedelta
    run_lease: timedelta
    misfire_grace: timedelta
    engine_wait: timedelta


@dataclass(frozen=True, slots=True)
class Left:
    """What the worker of a run that nobody claims has left behind: where its container is, if that is
    known, and when its engine is given up (long ago, where there is none to wait for)."""

    site: Site | None = None
    given_up_at: datetime = EPOCH


NOTHING_LEFT = Left()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a row.

    ``push`` it with these flags, look again at ``next_check``, ``forbid`` it (leave its tombstone),
    ``end`` it, unless somebody has begun it, say its outcome again (``repeat``: a message of events), or
    settle it as ``missed``.
    """

    push: Flag | None = None
    next_check: datetime | None = None
    forbid: bool = False
    end: bool = False
    repeat: bytes = b""
    missed: bool = False


def judge(
    row: OverdueRow,
    claim: KnownClaim | None,
    place: Whereabouts,
    now: datetime,
    times: SweepTimes,
    left: Left = NOTHING_LEFT,
) -> Verdict:
    """A row whose ``check_at`` has passed (pure)."""
    forbid = row.cancel_requested_at is not None
    if claim is not None and claim.attempt >= row.attempt:
        return replace(_judge_claimed(claim, now, times), forbid=forbid)
    if row.state == State.WAITING and row.cancel_requested_at is not None:
        return _judge_unwanted(row.cancel_requested_at + times.enqueue_timeout, left, now, times)
    if place.in_flight or place.in_line:
        later = now + WAITS_LOOKED_AT * times.run_lease
        return Verdict(next_check=later if place.in_line else None, forbid=forbid)
    if row.state == State.ACTIVE:
        return replace(_judge_abandoned(place, left, now, times), forbid=forbid)
    return _judge_waiting(row, place, left, now, times)


def _judge_waiting(
    row: OverdueRow, place: Whereabouts, left: Left, now: datetime, times: SweepTimes
) -> Verdict:
    if place.sent_at is not None and now < place.sent_at + times.enqueue_timeout:
        return Verdict(next_check=place.sent_at + times.enqueue_timeout)
    if left.site is not None:
        return _judge_abandoned(place, left, now, times)
    if row.unsent and now - row.check_at > times.misfire_grace:
        return Verdict(missed=True)
    if row.queued_at is None:
        return Verdict(push=Flag.NONE)
    # Sent once more; a queue that is only long gets ever fewer copies.
    pause = max(times.enqueue_timeout, min(now - row.queued_at, LONGEST_PAUSE))
    return Verdict(push=Flag.NONE, next_check=now + pause)


def _judge_unwanted(until: datetime, left: Left, now: datetime, times: SweepTimes) -> Verdict:
    """It is not to start. With a site and no claim it may have begun, and its JOB_STARTED be on its way."""
    if left.site is not None and now < until:
        return Verdict(next_check=min(until, now + times.run_lease), forbid=True)
    return Verdict(end=True)


def _judge_claimed(claim: KnownClaim, now: datetime, times: SweepTimes) -> Verdict:
    """Somebody runs it, or has finished it and the recorder has not heard of it yet."""
    if claim.outcome and now - decode(claim.outcome)[0].at >= times.enqueue_timeout:
        return Verdict(next_check=now + times.enqueue_timeout, repeat=claim.outcome)
    return Verdict(next_check=now + (claim.ends_in if not claim.outcome else times.run_lease))


def _judge_abandoned(place: Whereabouts, left: Left, now: datetime, times: SweepTimes) -> Verdict:
    """Nobody holds a run that has begun: send it to be taken up, unless that is under way already."""
    again = now + 2 * times.run_lease
    if now < left.given_up_at < again:
        again = left.given_up_at
    taken_at = EPOCH if left.site is None else left.site.taken_at
    given_up_at = left.given_up_at if left.given_up_at <= now else EPOCH
    sent_at = place.sent_at
    if sent_at is not None and max(taken_at, given_up_at, now - times.enqueue_timeout) < sent_at:
        return Verdict(next_check=again)
    return Verdict(push=Flag.REATTACH, next_check=again)


def is_copy(row: OverdueRow, verdict: Verdict) -> bool:
    """Whether what is pushed has been sent before, and may lie in its queue (pure)."""
    return verdict.push is Flag.NONE and row.queued_at is not None


def left_in_queue(verdict: Verdict, now: datetime, times: SweepTimes) -> Verdict:
    """In place of a copy for a queue from which nobody takes: it is there once already (pure)."""
    return Verdict(next_check=now + times.enqueue_timeout, forbid=verdict.forbid)


class Known(NamedTuple):
    """What Redis knows of a row that is judged."""

    claim: KnownClaim | None
    place: Whereabouts
    left: Left


def look_up(window: Window, pools: Pools, rows: Sequence[OverdueRow], times: SweepTimes) -> list[Known]:
    """What is known of each row. StoreUnavailable."""
    in_line = pools.waiting([row.id for row in rows])
    places = [
        replace(place, in_line=waits)
        for place, waits in zip(window.locate([entry_of(row) for row in rows]), in_line, strict=True)
    ]
    claims = known_claims(window.store, [row.id for row in rows])
    unclaimed = [row for row, claim in zip(rows, claims, strict=True) if _is_unclaimed(row, claim)]
    left = _left(unclaimed, window.store, times)
    return [
        Known(claim, place, left.get(row.id, NOTHING_LEFT))
        for row, claim, place in zip(rows, claims, places, strict=True)
    ]


def _left(unclaimed: Sequence[OverdueRow], store: Store, times: SweepTimes) -> dict[UUID, Left]:
    if not unclaimed:
        return {}
    seen = Engines(store).seen()
    sites = known_sites(store, [(row.id, row.attempt) for row in unclaimed])
    return {
        row.id: Left(site, site.given_up_at(seen, times.engine_wait))
        for row, site in zip(unclaimed, sites, strict=True)
        if site is not None
    }


class Sweeper:
    def __init__(
        self, window: Window, ownership: Ownership, events: EventPublisher, times: SweepTimes
    ) -> None:
        self._window = window
        self._ownership = ownership
        self._events = events
        self._times = times
        self._pools = Pools(window.store, LEASES * times.run_lease)

    def run_once(self) -> float:
        """Look at every overdue row of the owned shards once; the seconds until the next sweep."""
        shards = self._ownership.owned()
        if not shards:
            return PERIOD_S
        now = from_millis(self._window.store.now_ms())
        after: tuple[datetime, UUID] = (EPOCH, _FIRST)
        with database_available():
            read_at = monotonic()
            while rows := self._page(shards, now - GRACE, after):
                self._sweep(rows, now, read_at)
                read_at = monotonic()
                after = rows[-1].check_at, rows[-1].id
                if len(rows) < PAGE:
                    break
        return PERIOD_S

    def _page(self, shards: Sequence[int], until: datetime, after: tuple[datetime, UUID]) -> list[OverdueRow]:
        with connection.cursor() as cursor:
            cursor.execute(SWEEPS["overdue"], [list(shards), until, *after, until - CHANGE_LASTS, PAGE])
            return [OverdueRow(*row) for row in cursor.fetchall()]

    def _sweep(self, rows: Sequence[OverdueRow], now: datetime, read_at: float) -> None:
        found = look_up(self._window, self._pools, rows, self._times)
        pairs = list(zip(rows, found, strict=True))
        self._keep_places(
            [row for row, known in pairs if row.state == State.ACTIVE and _is_unclaimed(row, known.claim)]
        )
        judged = self._without_copies([(row, self._verdict(row, known, now)) for row, known in pairs], now)
        self._note_next_look(judged)
        require_fresh(read_at)
        self._carry_out(judged, now)
        if missed := [_missed(row) for row, verdict in judged if verdict.missed]:
            settle_missed(missed, now)

    def _keep_places(self, active: Sequence[OverdueRow]) -> None:
        """What runs unwatched: looked at every two leases, it keeps its places, which last three."""
        bodies = spec_bodies({row.spec_id for row in active}) if active else {}
        pools = {spec_id: pools_of(Spec.from_json(json.loads(body))) for spec_id, body in bodies.items()}
        self._pools.renew({row.id: pools[row.spec_id] for row in active})

    def _without_copies(
        self, judged: Sequence[tuple[OverdueRow, Verdict]], now: datetime
    ) -> list[tuple[OverdueRow, Verdict]]:
        again = [row for row, verdict in judged if is_copy(row, verdict)]
        if not again:
            return list(judged)
        served = {queue for worker in present_workers(self._window.store) for queue in worker.queues}
        bodies = spec_bodies({row.spec_id for row in again})
        queues = {spec_id: Spec.from_json(json.loads(body)).queue for spec_id, body in bodies.items()}
        kept = {row.id for row in again if queues.get(row.spec_id) not in served}
        return [(row, left_in_queue(v, now, self._times) if row.id in kept else v) for row, v in judged]

    def _verdict(self, row: OverdueRow, known: Known, now: datetime) -> Verdict:
        """A row that cannot be judged is looked at again later, and holds up no other."""
        try:
            return judge(row, known.claim, known.place, now, self._times, known.left)
        except InvalidValue as error:
            logger.error("row_not_judged", extra={"execution": row.id, "error": error.message})
            return Verdict(next_check=now + self._times.run_lease)

    def close(self) -> None:
        self._events.close()

    def _note_next_look(self, judged: Sequence[tuple[OverdueRow, Verdict]]) -> None:
        """Before anything else: PostgreSQL may take no writes, and all would be done every sweep."""
        with transaction.atomic():
            postpone([(row.id, row.check_at, v.next_check) for row, v in judged if v.next_check is not None])

    def _carry_out(self, judged: Sequence[tuple[OverdueRow, Verdict]], now: datetime) -> None:
        entries = [
            pushed_entry(row, verdict.push, now, self._times)
            for row, verdict in judged
            if verdict.push is not None
        ]
        sent_again(self._window.store, [entry.execution_id for entry in entries])
        self._window.add(entries, spec_bodies({entry.spec_id for entry in entries}))
        for row, verdict in judged:
            if verdict.forbid:
                self._window.forbid(row.id)
            if verdict.end:
                end_cancelled(row.id, row.attempt, now)
            if verdict.repeat:
                logger.warning("outcome_repeated", extra={"execution": row.id, "attempt": row.attempt})
                self._events.publish(verdict.repeat)
        if entries:
            logger.warning("overdue_pushed", extra=_counts(judged))


def pushed_entry(row: OverdueRow, flags: Flag, now: datetime, times: SweepTimes) -> Entry:
    """Due when the row is: what waits its turn in a bucket already stays there once, and keeps its turn.

    But for what is so old that the window would not give it out.
    """
    late = now - times.misfire_grace / 2
    return entry_of(row, flags, now if row.check_at < late else row.check_at)


def entry_of(row: OverdueRow, flags: Flag = Flag.NONE, due: datetime | None = None) -> Entry:
    return Entry(
        execution_id=row.id,
        spec_id=row.spec_id,
        attempt=row.attempt,
        due=due or row.check_at,
        generation=row.generation,
        flags=flags,
    )


def _is_unclaimed(row: OverdueRow, claim: KnownClaim | None) -> bool:
    return claim is None or claim.attempt < row.attempt


def _missed(row: OverdueRow) -> MissedRun:
    return MissedRun(entry_of(row), row.job_id, row.scheduled_for)


def _counts(judged: Sequence[tuple[OverdueRow, Verdict]]) -> dict[str, Any]:
    pushed = [verdict.push for _, verdict in judged if verdict.push is not None]
    return {"runs": len(pushed), "without_worker": sum(Flag.REATTACH in flags for flags in pushed)}
