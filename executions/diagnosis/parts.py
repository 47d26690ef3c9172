"""Parts of the system that are away or behind, as causes (pure)."""

from __future__ import annotations

from collections.abc import Iterator

from executions.diagnosis.facts import Cause, Code, Facts


def without_beats(facts: Facts) -> Iterator[Cause]:
    redis = facts.redis
    if redis is None:
        yield redis_away("nothing is sent to the workers")
    elif not redis.beats:
        yield Cause(
            Code.NO_BEAT,
            "No beat is running: nothing is started at its time.",
            "Start one: celery -A scheduler_project beat.",
            facts={"beats": 0},
        )
    elif redis.owner is None:
        yield Cause(
            Code.SHARD_WITHOUT_BEAT,
            f"No beat owns its shard ({facts.shard}) at this moment; one takes it over within seconds.",
            "If this lasts, check that all beats have the same PUNCTUAL_SHARDS.",
            facts={"shard": facts.shard, "beats": len(redis.beats)},
        )


def recording(facts: Facts) -> Iterator[Cause]:
    queue = facts.recorder
    if queue is None:
        return
    if queue.consumers == 0:
        yield Cause(
            Code.NO_RECORDER,
            f"No recorder is running, so states stay as they are; {queue.messages} events wait.",
            "Start one: manage.py record_events.",
            facts={"events": queue.messages},
        )
    elif queue.messages:
        yield Cause(
            Code.RECORDER_BEHIND,
            f"The recorder is behind: {queue.messages} events wait to be recorded.",
            facts={"events": queue.messages},
        )


def redis_away(meanwhile: str) -> Cause:
    return Cause(Code.REDIS_AWAY, f"Redis does not answer: {meanwhile}.", "Bring it back (REDIS_URL).")


def broker_away(meanwhile: str) -> Cause:
    return Cause(Code.BROKER_AWAY, f"The broker does not answer: {meanwhile}.", "Bring it back (BROKER_URL).")
