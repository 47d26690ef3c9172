"""Why is a run not running? Gathers what PostgreSQL, Redis and the broker know, and has it judged.

``why`` is what REST, the admin and the commands ask; executions/diagnosis makes sentences of the facts.
The parts that may be silent are asked with short time limits: an answer takes about a second at the most,
and says which part was away.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from executions.attendance import attended, attending
from executions.beats import living_beats, owners_of
from executions.bus.connection import BusUnavailable
from executions.bus.depths import QueueFacts, queue_facts
from executions.bus.topology import RECORDER
from executions.claims import known_claims
from executions.diagnosis import Cause, Facts, diagnose
from executions.diagnosis.facts import CatchUp, InRedis, Line, RunRef
from executions.entries import Entry
from executions.explanations import explain
from executions.holding import FIRST_HELD, due_when_released, is_held
from executions.logs import last_note
from executions.models import Execution, ExecutionEvent
from executions.pools import Pools, pool_owner
from executions.presence import workers_of
from executions.priorities import Priority, broker_queue
from executions.runspecs import Spec
from executions.states import HOLDABLE, TERMINAL, EventType, State, Trigger
from executions.store import Store, StoreUnavailable, hasty_store
from executions.timeline import ENDS
from executions.window import Window

MOST_OTHERS = 20
MOST_HOLDERS = 5
_ASKED_WITHIN_S = 0.8


def why(execution: Execution, now: datetime) -> list[Cause]:
    """What keeps the run, the first cause first. A part that is away is a cause, and no error."""
    return diagnose(gather(execution), now)


def gather(execution: Execution) -> Facts:
    """All that is known of it at this moment."""
    spec = Spec.from_json(execution.spec.body)
    state, trigger = State(execution.state), Trigger(execution.trigger)
    held = execution.check_at is not None and is_held(execution.check_at)
    live = state in {State.WAITING, State.ACTIVE}
    redis = _in_redis(execution, spec) if live else None
    queues = _in_broker(spec) if state is State.WAITING and redis is not None else None
    recorder = None if queues is None else queues.pop(RECORDER)
    seen = _seen(execution) if live else set()
    explanation = explain(execution.reason, execution.exit_code) if state in TERMINAL else None
    return Facts(
        state=state,
        trigger=trigger,
        attempt=execution.attempt,
        shard=execution.shard,
        queue=spec.queue,
        broker_queue=broker_queue(spec.queue, spec.priority),
        due=None if execution.check_at is None else due_when_released(execution.check_at),
        held=held,
        changing=bool(execution.generation % 2),
        asked_to_stop=execution.cancel_requested_at is not None,
        reason=execution.reason,
        message=execution.message,
        worker=execution.worker,
        queued_at=execution.queued_at,
        started_at=execution.started_at,
        finished_at=execution.finished_at,
        moved=execution.moved_to is not None,
        most_active=execution.most_active,
        turned_away_at=execution.turned_away_at,
        explanation="" if explanation is None else str(explanation),
        note=last_note(execution) if state is State.ACTIVE and redis is not None else "",
        others=_others(execution, trigger) if held else (),
        begun=EventType.STARTED in seen,
        over=bool(seen & ENDS) or (redis is not None and redis.done),
        redis=redis,
        queues=queues,
        recorder=recorder,
        catch_up=_catch_up() if held and trigger in HOLDABLE else None,
    )


def _in_redis(execution: Execution, spec: Spec) -> InRedis | None:
    """None where it does not answer."""
    store = hasty_store()
    with suppress(StoreUnavailable):
        entry = Entry(
            execution_id=execution.id,
            spec_id=execution.spec_id,
            attempt=execution.attempt,
            due=execution.scheduled_for,
            generation=execution.generation,
        )
        (claim,) = known_claims(store, [execution.id])
        mine = claim if claim is not None and claim.attempt == execution.attempt else None
        (place,) = Window(store).locate([entry])
        return InRedis(
            beats=living_beats(store),
            owner=owners_of(store, [execution.shard])[execution.shard],
            workers=workers_of(store, spec.queue),
            line=_line(store, execution, spec),
            sent_at=place.sent_at,
            claimed=mine is not None,
            done=mine is not None and bool(mine.outcome),
        )
    return None


def _seen(execution: Execution) -> set[EventType]:
    """What the history has of the attempt: it may be ahead of the row."""
    found = ExecutionEvent.objects.filter(execution_id=execution.id, attempt=execution.attempt)
    return {EventType(kind) for kind in found.values_list("type", flat=True)}


def _line(store: Store, execution: Execution, spec: Spec) -> Line | None:
    pools = Pools(store, timedelta(0))
    found = pools.line_of(execution.id)
    if found is None:
        return None
    full, ahead = found
    holders = _refs(pools.holders(full.pool, MOST_HOLDERS), execution.owner_id)
    return Line(full, pool_owner(full.pool, spec), ahead, holders)


def _in_broker(spec: Spec) -> dict[str, QueueFacts] | None:
    """The recorder's queue, and those of the run's queue in the order in which workers take from them."""
    names = [RECORDER, *(broker_queue(spec.queue, priority) for priority in Priority)]
    with suppress(BusUnavailable):
        return attended(queue_facts(names, _ASKED_WITHIN_S), _attending())
    return None


def _attending() -> dict[str, list[str]] | None:
    with suppress(StoreUnavailable):
        return attending(hasty_store())
    return None


def _others(execution: Execution, trigger: Trigger) -> list[RunRef]:
    """Runs of the same job that have been let go before this one, and have not ended."""
    beside = [trigger] if trigger is Trigger.BACKFILL else [Trigger.SCHEDULE, Trigger.CATCH_UP]
    found = (
        Execution.objects.select_related("spec")
        .filter(job_id=execution.job_id, finished_at__isnull=True, check_at__lt=FIRST_HELD)
        .filter(trigger__in=[str(item) for item in beside])
        .exclude(id=execution.id)[:MOST_OTHERS]
    )
    return [_ref(run) for run in sorted(found, key=lambda run: run.id) if _is_under_way(run)]


def _is_under_way(run: Execution) -> bool:
    waits_for_its_time = run.state == State.WAITING and run.queued_at is None and run.attempt == 1
    return run.trigger in HOLDABLE or not waits_for_its_time


def _refs(runs: Sequence[UUID], owner_id: int) -> list[RunRef]:
    """Of those, the ones that belong to the same team: nobody is told what other teams run."""
    found = Execution.objects.select_related("spec").filter(id__in=list(runs), owner_id=owner_id)
    return [_ref(run) for run in found]


def _ref(run: Execution) -> RunRef:
    return RunRef(run.id, run.spec.body["job_name"], State(run.state))


def _catch_up() -> CatchUp:
    """By the index of what catches up; counted up to the limit."""
    most = settings.PUNCTUAL_CATCHUP_ACTIVE
    going = Execution.objects.filter(
        trigger__in=[str(item) for item in sorted(HOLDABLE)], check_at__isnull=False, check_at__lt=FIRST_HELD
    )
    return CatchUp(settings.PUNCTUAL_CATCHUP_RATE, most, len(going.values_list("id")[: most + 1]))
