"""Runs that were sent to the workers and have not begun, as causes (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from executions.diagnosis.facts import Cause, Code, Facts, Line
from executions.diagnosis.parts import broker_away, recording, redis_away
from executions.pools import NO_ROOM
from executions.presence import PresentWorker


def sent(facts: Facts) -> Iterator[Cause]:
    redis = facts.redis
    if redis is None:
        yield redis_away("no worker begins anything")
        if facts.message.startswith("waits for "):
            yield Cause(
                Code.IN_QUEUE, f"Before that it waited for {facts.message.removeprefix('waits for ')}."
            )
        return
    if redis.claimed:
        yield from unrecorded(facts)
        return
    if redis.line is not None:
        yield _in_line(redis.line)
    elif not redis.workers:
        yield _no_worker(facts)
    else:
        yield from _among_workers(facts, redis.workers)
    if facts.queues is None:
        yield broker_away("what it has cannot reach the workers")
    if facts.queued_at is None:
        yield from recording(facts)


def unrecorded(facts: Facts) -> Iterator[Cause]:
    """It is further than its row: where the attempt is ``over``, its end is not recorded; else its start."""
    if facts.over:
        yield Cause(
            Code.ENDED_UNRECORDED,
            f"Its attempt {facts.attempt} has ended; that is not recorded yet.",
            facts={"attempt": facts.attempt},
        )
    else:
        yield Cause(Code.BEGUN_UNRECORDED, "A worker has begun it; that has not been recorded yet.")
    yield from recording(facts)


def _in_line(line: Line) -> Cause:
    if line.full.limit is None:
        return Cause(
            Code.LIMITS_UNKNOWN,
            "Redis has lost the limits on runs at once; a beat writes them again within seconds.",
        )
    before = "it is the next" if line.ahead == 0 else f"{line.ahead} wait before it"
    runs = f"{line.full.limit} run{'' if line.full.limit == 1 else 's'}"
    advice = "Nothing begins until the pool has slots." if line.full.limit == 0 else ""
    return Cause(
        Code.POOL_FULL,
        f"It waits for a place: {line.whose} may have {runs} at once; {before}.",
        advice or "It begins when one of those that have a place ends, or when the limit is raised.",
        runs=line.holders,
        facts={"pool": line.full.pool, "limit": line.full.limit, "ahead": line.ahead},
    )


def _no_worker(facts: Facts) -> Cause:
    return Cause(
        Code.NO_WORKER,
        f"No worker listens on the queue {facts.queue!r}.",
        f"Start one (celery -A scheduler_project worker -Q {facts.queue}), or give the job another queue.",
        facts={"queue": facts.queue},
    )


def _among_workers(facts: Facts, workers: Sequence[PresentWorker]) -> Iterator[Cause]:
    if facts.reason == NO_ROOM:
        rest = facts.message.removeprefix("waits for ")
        yield Cause(
            Code.NO_ROOM,
            f"No worker of the queue {facts.queue!r} is large enough: it waits for {rest}.",
            "Let the job ask for less CPU and memory, or start a larger worker.",
            facts={"queue": facts.queue},
        )
        return
    before = _before(facts)
    if all(worker.full for worker in workers):
        yield _all_full(facts, workers)
        if before:
            yield before
        return
    yield before or Cause(
        Code.IN_QUEUE,
        f"It is with the workers of the queue {facts.queue!r}; one begins it in a moment.",
        facts={"queue": facts.queue, "workers": len(workers)},
    )


def _all_full(facts: Facts, workers: Sequence[PresentWorker]) -> Cause:
    slots = sum(worker.slots for worker in workers)
    whose = "the worker" if len(workers) == 1 else f"all {len(workers)} workers"
    return Cause(
        Code.WORKERS_FULL,
        f"Every slot ({slots}) of {whose} of the queue {facts.queue!r} is taken.",
        "It begins when a run ends. More workers, or more slots (celery … -c), begin it earlier.",
        facts={"queue": facts.queue, "workers": len(workers), "slots": slots},
    )


def _before(facts: Facts) -> Cause | None:
    """How many messages may go before it: those of higher classes, and of its own."""
    if not facts.queues:
        return None
    waiting = 0
    for name, found in facts.queues.items():
        waiting += found.messages
        if name == facts.broker_queue:
            break
    ahead = max(0, waiting - 1)
    if not ahead:
        return None
    others = f"{ahead} other run{'' if ahead == 1 else 's'}"
    return Cause(
        Code.IN_QUEUE,
        f"{others} wait{'s' if ahead == 1 else ''} in the queue {facts.queue!r} too, most of them before it.",
        facts={"queue": facts.queue, "ahead": ahead},
    )
