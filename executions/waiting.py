"""For what a run waits that was sent to the workers: as Redis knows it at this moment, in words."""

from __future__ import annotations

from datetime import timedelta

from executions.models import Execution
from executions.pools import NO_ROOM, Pools, describe_full
from executions.presence import workers_of
from executions.priorities import DEFAULT_QUEUE
from executions.runspecs import Spec
from executions.states import State
from executions.store import Store, StoreUnavailable


def waits_for(execution: Execution, store: Store) -> str | None:
    """None where nothing is known to keep it but a free slot."""
    if execution.state != State.WAITING or execution.queued_at is None:
        return None
    try:
        return _waits_for(execution, store)
    except StoreUnavailable:
        return _said(execution)


def _waits_for(execution: Execution, store: Store) -> str | None:
    spec = Spec.from_json(execution.spec.body)
    found = Pools(store, timedelta(0)).line_of(execution.id)
    if found is not None:
        full, ahead = found
        before = "it is the next" if ahead == 0 else f"{ahead} before it"
        return f"{describe_full(full, spec)}; {before}"
    queue = execution.spec.body.get("queue", DEFAULT_QUEUE)
    if not workers_of(store, queue):
        return f"a worker: none listens on the queue {queue!r}"
    return _said(execution) if execution.reason == NO_ROOM else None


def _said(execution: Execution) -> str | None:
    """What was said when it was delivered."""
    _, found, rest = execution.message.partition("waits for ")
    return rest if found else None
