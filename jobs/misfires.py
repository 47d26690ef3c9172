"""Misfires: what becomes of planned times that passed while nothing could start them (pure).

A fire is *missed* when it passed by more than the grace (PUNCTUAL_MISFIRE_GRACE) and nothing started
it: an outage, a pause, no worker. One that is late by less is just late, and runs as it is.

    planned (overdue)                      missed                      just late     next
    ──┼──────────────x──────────x──────────x──────────x──────────┼───────x─────┼───────┼──▶
                                                            now - grace       now

The policy of the job says which of the missed fires still run: ``all`` of them, the ``latest``, or
``none``; not those older than ``max_age``, and at most the last ``max_count``. The others are one block.
The regular chain goes on with the first fire that is just late, as if there had been no outage before it, or
with the first one after now: always from the planned time, never from "now".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.schedules import Schedule, count_fires, last_fire, start_of_last
from scheduler_project.kernel.clock import MICROSECOND

ALL, LATEST, NONE = "all", "latest", "none"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which missed fires are run; ``max_age`` and ``max_count`` are limits on top (None: no limit)."""

    kind: str = LATEST
    max_age: timedelta | None = None
    max_count: int | None = None

    @property
    def limit(self) -> int | None:
        """How many run at most; None: however many there are."""
        if self.kind == NONE:
            return 0
        return 1 if self.kind == LATEST else self.max_count


@dataclass(frozen=True, slots=True)
class Block:
    """``count`` fires of a schedule, from ``first`` to ``last``."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Of the missed fires: the earlier ones are ``skipped``, the later ones still to ``run``."""

    skipped: Block | None = None
    run: Block | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of an overdue run and of all that was missed since.

    ``following`` is the fire with which the regular chain goes on.
    """

    decision: Decision
    following: datetime | None


def block_of(schedule: Schedule, after: datetime, until: datetime) -> Block | None:
    """The fires in (after, until]; None where there are none."""
    count = count_fires(schedule, after, until) if schedule.recurring and until > after else 0
    first = schedule.next_fire(after) if count else None
    last = last_fire(schedule, after, until) if count else None
    return None if first is None or last is None else Block(first, last, count)


def decide(schedule: Schedule, after: datetime, until: datetime, now: datetime, policy: Policy) -> Decision:
    """Which of the fires in (after, until] run, where ``now`` is the first instant at which they can."""
    border = after
    if policy.max_age is not None:
        border = min(max(border, now - policy.max_age - MICROSECOND), max(after, until))
    if policy.limit is not None:
        border = start_of_last(schedule, border, until, policy.limit)
    return Decision(block_of(schedule, after, border), block_of(schedule, border, until))


def settle_overdue(
    schedule: Schedule, planned: datetime, now: datetime, grace: timedelta, policy: Policy
) -> Settlement:
    """What becomes of the run ``planned`` that nothing has started, and of the fires after it.

    A run that the schedule does not name (one that was moved, or of a schedule that has changed)
    counts as the first of the missed.
    """
    before = planned - MICROSECOND
    if schedule.recurring and schedule.next_fire(before) == planned:
        return settle_since(schedule, planned, now, grace, policy, after=before)
    if not schedule.recurring:
        return settle_alone(planned, now, policy)
    rest = settle_since(schedule, planned, now, grace, policy)
    return Settlement(_with_first(planned, rest.decision, now, policy), rest.following)


def settle_alone(planned: datetime, now: datetime, policy: Policy) -> Settlement:
    """What becomes of a run that no other fire follows: of a job that runs once."""
    return Settlement(_alone(planned, now, policy), None)


def settle_since(
    schedule: Schedule,
    planned: datetime,
    now: datetime,
    grace: timedelta,
    policy: Policy,
    *,
    after: datetime | None = None,
) -> Settlement:
    """What becomes of the fires later than ``planned``, the last one that anything is known of.

    ``after``: of those later than this instead (to count ``planned`` itself).
    """
    cut, following = _border(schedule, planned, now, grace)
    return Settlement(decide(schedule, after or planned, cut, now, policy), following)


def _border(
    schedule: Schedule, planned: datetime, now: datetime, grace: timedelta
) -> tuple[datetime, datetime | None]:
    """Up to where fires are missed, and the fire with which the regular chain goes on."""
    following = schedule.next_fire(max(planned, now - grace - MICROSECOND))
    if following is None or following > now:
        return max(now, planned), following
    return following - MICROSECOND, following


def _alone(planned: datetime, now: datetime, policy: Policy) -> Decision:
    block = Block(planned, planned, 1)
    too_old = policy.max_age is not None and now - planned > policy.max_age
    return Decision(skipped=block) if policy.limit == 0 or too_old else Decision(run=block)


def _with_first(planned: datetime, rest: Decision, now: datetime, policy: Policy) -> Decision:
    """``rest``, with a further fire before it."""
    kept = 0 if rest.run is None else rest.run.count
    room = policy.limit is None or kept < policy.limit
    if rest.skipped is None and room and _alone(planned, now, policy).run is not None:
        last = planned if rest.run is None else rest.run.last
        return Decision(run=Block(planned, last, kept + 1))
    last, count = (planned, 0) if rest.skipped is None else (rest.skipped.last, rest.skipped.count)
    return Decision(Block(planned, last, count + 1), rest.run)
