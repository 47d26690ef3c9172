"""Overlaps: what follows a run that has begun or ended, by its job's rule (pure).

forbid    The next occurrence is made when this run ends: the first fire after its end.

    planned         started                    finished                 next
    ──┼───x────x──────┼──────x──────x─────────────┼───────────────────────┼──▶
          └ missed ┘  └── skipped_overlap ────────┘

          Missed are those that passed by more than the grace before it started (jobs/misfires.py).
allow     The next is made when this run begins, and runs beside it.
queue     Each fire runs, one after the other: the next is the fire after this one, due at once where
          it has passed. What waits is no row: at most QUEUE_LIMIT fires, the older ones are skipped.
replace   The next is made when this run begins, held: at its time this run is cancelled, and when it
          has ended the next one starts (jobs/parking.py).

A run that catches up is followed by the next of the missed fires, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.misfires import Block, Decision, Policy, Settlement, block_of, decide
from jobs.schedules import Schedule, fires_between, start_of_last

FORBID, ALLOW, QUEUE, REPLACE = "forbid", "allow", "queue", "replace"
FOLLOW_AT_THE_BEGINNING = (ALLOW, REPLACE)
SKIPPED_OVERLAP = "skipped_overlap"
SKIPPED_MISFIRE = "skipped_misfire"
QUEUE_LIMIT = 1000


class Kind(StrEnum):
    REGULAR = "regular"  # at its time
    PARKED = "parked"  # held until another run of the job has ended
    CATCH_UP = "catch-up"  # held until it is given leave, at a limited rate


@dataclass(frozen=True, slots=True)
class Planned:
    """An occurrence to be made for the fire ``due``; ``until``: the last of the missed ones after it."""

    due: datetime
    kind: Kind = Kind.REGULAR
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Fires that do not run, and why."""

    block: Block
    reason: str


Following = list[Planned | Skipped]


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides about a job's occurrences; ``reason``: of the missed fires that do not run.

    ``parked``: the regular chain goes on with an occurrence that is held for a run under way.
    """

    schedule: Schedule
    overlap: str
    policy: Policy
    grace: timedelta
    reason: str = SKIPPED_MISFIRE
    parked: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """What somebody chose in place of the job's own policy and the setting's grace (None: those).

    ``reason`` and ``parked`` as of the rules.
    """

    policy: Policy | None = None
    grace: timedelta | None = None
    reason: str = SKIPPED_MISFIRE
    parked: bool = False

    def of(self, rules: Rules) -> Rules:
        grace = rules.grace if self.grace is None else self.grace
        policy = self.policy or rules.policy
        return replace(rules, policy=policy, grace=grace, reason=self.reason, parked=self.parked)


OWN_TERMS = Terms()


def following_end(rules: Rules, planned: datetime, started: datetime | None, finished: datetime) -> Following:
    """After a run of a job with ``forbid`` or ``queue`` has ended."""
    if not rules.schedule.recurring:
        return []
    if rules.overlap == QUEUE:
        return _next_in_queue(rules.schedule, planned, finished)
    started = min(max(started or finished, planned), finished)
    missed, cut = _missed(rules, planned, started)
    return [*missed, *_overlapped(rules, cut, finished), *_next(rules, max(planned, finished), Kind.REGULAR)]


def following_beginning(rules: Rules, planned: datetime, begun: datetime, *, ended: bool) -> Following:
    """After a run of a job with ``allow`` or ``replace`` has begun; ``ended``: it is over already."""
    if not rules.schedule.recurring:
        return []
    begun = max(planned, begun)
    missed, cut = _missed(rules, planned, begun)
    if rules.overlap == ALLOW:
        late = fires_between(rules.schedule, cut, begun, QUEUE_LIMIT)
        return [*missed, *[Planned(fire) for fire in late], *_next(rules, begun, Kind.REGULAR)]
    kind = Kind.REGULAR if ended else Kind.PARKED
    return [*missed, *_overlapped(rules, cut, begun), *_next(rules, begun, kind)]


def following_catch_up(
    rules: Rules, planned: datetime, until: datetime, finished: datetime, *, reached: datetime | None = None
) -> Following:
    """After one of the missed fires has been run: the next of them; in a queue then the regular ones.

    ``reached``: the latest fire that is planned already, where that is later than ``until``.
    """
    fire = rules.schedule.next_fire(planned)
    if fire is not None and fire <= until:
        return [Planned(fire, Kind.CATCH_UP, until)]
    after = max(planned, until, reached or planned)
    return _next_in_queue(rules.schedule, after, finished) if rules.overlap == QUEUE else []


def following_settlement(rules: Rules, settlement: Settlement) -> Following:
    """What is left of an outage or a pause, and the regular chain; in a queue that waits for its turn."""
    asked = following_decision(settlement.decision, rules.reason)
    queued = rules.overlap == QUEUE and settlement.decision.run is not None
    if settlement.following is None or queued or not rules.schedule.recurring:
        return asked
    return [*asked, Planned(settlement.following, Kind.PARKED if rules.parked else Kind.REGULAR)]


def following_decision(decision: Decision, reason: str) -> Following:
    """The rows of a decision about missed fires."""
    skipped: Following = [Skipped(decision.skipped, reason)] if decision.skipped else []
    run: Following = [Planned(decision.run.first, Kind.CATCH_UP, decision.run.last)] if decision.run else []
    return skipped + run


def _missed(rules: Rules, planned: datetime, started: datetime) -> tuple[Following, datetime]:
    """What was missed before the run could start, and up to where."""
    cut = max(planned, started - rules.grace)
    decision = decide(rules.schedule, planned, cut, started, rules.policy)
    return following_decision(decision, rules.reason), cut


def _overlapped(rules: Rules, after: datetime, until: datetime) -> Sequence[Skipped]:
    block = block_of(rules.schedule, after, until)
    return [Skipped(block, SKIPPED_OVERLAP)] if block else []


def _next(rules: Rules, after: datetime, kind: Kind) -> Sequence[Planned]:
    fire = rules.schedule.next_fire(after)
    return [] if fire is None else [Planned(fire, kind)]


def _next_in_queue(schedule: Schedule, planned: datetime, finished: datetime) -> Following:
    border = start_of_last(schedule, planned, max(planned, finished), QUEUE_LIMIT)
    dropped = block_of(schedule, planned, border)
    fire = schedule.next_fire(border)
    skipped: Following = [Skipped(dropped, SKIPPED_OVERLAP)] if dropped else []
    return skipped if fire is None else [*skipped, Planned(fire)]
