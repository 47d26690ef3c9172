"""Why is a run not running? From facts, in plain sentences (pure).

The first cause is the one that keeps it now; what follows would keep it next, or makes it worse. The facts
are gathered in executions/why.py.

    held ───────── leave: catching up, a backfill, a run of the same job before it
    not due ────── its time, or the back-off after an attempt that failed
    due, unsent ── no beat, a shard without owner, Redis or the broker away
    sent ───────── a pool's line, no worker, all of them full, others before it in the queue
    Active ─────── its image or its start; a worker that is gone
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from executions.diagnosis.facts import Cause, Code, Facts, InRedis, instant_text, length_text
from executions.diagnosis.leave import needed_leave
from executions.diagnosis.parts import broker_away, redis_away, without_beats
from executions.diagnosis.workers import sent, unrecorded
from executions.states import State

__all__ = ["Cause", "Code", "Facts", "diagnose"]


def diagnose(facts: Facts, now: datetime) -> list[Cause]:
    """What keeps it, the first cause first; one cause says so where nothing does."""
    return list(_BY_STATE[facts.state](facts, now))


def _ended(facts: Facts, _now: datetime) -> Iterator[Cause]:
    at = facts.finished_at
    yield Cause(Code.ENDED, f"It has ended: {facts.state}. {facts.explanation}".strip(), at=at)


def _paused(_facts: Facts, _now: datetime) -> Iterator[Cause]:
    yield Cause(Code.JOB_PAUSED, "Its job is paused: nothing of it starts.", "Resume the job.")


def _active(facts: Facts, _now: datetime) -> Iterator[Cause]:
    where = f" on the worker {facts.worker}" if facts.worker else ""
    if facts.over:
        yield from unrecorded(facts)
        return
    gone = facts.redis is not None and not facts.redis.claimed
    if facts.asked_to_stop:
        yield Cause(Code.STOPPING, f"It was asked to stop and is being stopped{where}.")
    elif facts.note and not gone:
        yield _starting(facts, where)
    elif not gone:
        yield Cause(Code.RUNNING, f"It runs{where}.", at=facts.started_at)
    if facts.redis is None:
        yield redis_away("whether its worker is there is not known")
    elif gone:
        whose = f"the worker {facts.worker}" if facts.worker else "a worker"
        yield Cause(
            Code.WORKER_GONE,
            f"It ran on {whose}, which has not been heard of lately; another of the same engine takes it up.",
            "Where there is no other, start one.",
        )


def _starting(facts: Facts, where: str) -> Cause:
    if facts.note.startswith("pulling the image"):
        return Cause(
            Code.IMAGE_PULL, f"Its image is being fetched{where}: {facts.note}.", facts={"note": facts.note}
        )
    return Cause(
        Code.STARTING,
        f"It has put out nothing yet{where}. Its runtime said last: {facts.note}.",
        facts={"note": facts.note},
    )


def _waiting(facts: Facts, now: datetime) -> Iterator[Cause]:
    if facts.asked_to_stop:
        yield Cause(Code.STOPPING, "It was asked to stop: it will not start, and is about to be Cancelled.")
        return
    if facts.begun or facts.over:
        yield from unrecorded(facts)
        return
    if facts.changing:
        yield Cause(Code.BEING_CHANGED, "It is being changed at this moment, and goes on in a few seconds.")
    if facts.held:
        yield needed_leave(facts, now)
    elif facts.queued_at is not None or (facts.redis is not None and _is_out(facts.redis)):
        yield from sent(facts)
        return
    elif facts.due is not None and facts.due > now:
        yield _not_due(facts, facts.due, now)
    else:
        yield from _overdue(facts, now)
        return
    yield from without_beats(facts)


def _is_out(redis: InRedis) -> bool:
    """It is further than its row knows."""
    return redis.claimed or redis.sent_at is not None or redis.line is not None


def _not_due(facts: Facts, due: datetime, now: datetime) -> Cause:
    left = length_text(due - now)
    if facts.attempt > 1:
        said = f": {facts.message.rstrip('.')}" if facts.message else ""
        return Cause(
            Code.BACK_OFF,
            f"Attempt {facts.attempt - 1} failed{said}. "
            f"Attempt {facts.attempt} is due in {left}, at {instant_text(due)}.",
            "The job's retryDelay and retryPolicy make this pause; reschedule the run to have it earlier.",
            at=due,
            facts={"attempt": facts.attempt},
        )
    moved = ": somebody gave it this time" if facts.moved else ""
    return Cause(Code.NOT_DUE, f"It is due in {left}, at {instant_text(due)}{moved}.", at=due)


def _overdue(facts: Facts, now: datetime) -> Iterator[Cause]:
    """Due, and nobody has sent it."""
    found = list(without_beats(facts))
    if facts.redis is not None and facts.queues is None:
        found.append(broker_away("nothing can be sent to the workers"))
    yield from found
    if not found:
        late = length_text(now - (facts.due or now))
        yield Cause(
            Code.BEING_SENT,
            f"It is due since {late}; a beat sends it to a worker within moments.",
            at=facts.due,
            facts={"beat": facts.redis.owner if facts.redis else None},
        )


_BY_STATE: dict[State, Callable[[Facts, datetime], Iterator[Cause]]] = {
    State.WAITING: _waiting,
    State.ACTIVE: _active,
    State.PAUSED: _paused,
    State.COMPLETED_NORMALLY: _ended,
    State.COMPLETED_ABNORMALLY: _ended,
    State.CANCELLED: _ended,
}
