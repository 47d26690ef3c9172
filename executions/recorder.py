"""The recorder: turns events into states, retries and next occurrences."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from executions.bus.consuming import BatchConsumer
from executions.bus.topology import RECORDER, may_lose_deliveries
from executions.database import database_available
from executions.events import Event
from executions.scheduling import forbid, outcomes_heard, push_due_soon
from executions.states import OUTCOMES
from executions.transitions import record
from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock

logger = logging.getLogger(__name__)


def recorder(clock: Clock = SYSTEM_CLOCK) -> BatchConsumer:
    """A consumer that applies each batch in one transaction and then pushes what is due soon.

    An event is acknowledged only after its transaction has committed; it may come again,
    and then changes nothing. Over a transport that may lose a delivery with the consumer that
    has it in hand, the history is written here as well as by the auditor.
    """
    keep = may_lose_deliveries(settings.BROKER_URL)

    def handle(events: list[Event]) -> None:
        now = clock.now()
        with database_available():
            with transaction.atomic():
                done = record(events, now, keep=keep)
            push_due_soon(done.entries, now)
        forbid(done.unwanted)
        outcomes_heard({(event.execution_id, event.attempt) for event in events if event.type in OUTCOMES})
        for event in done.unknown:
            logger.warning(
                "event_without_run", extra={"execution": event.execution_id, "event": str(event.type)}
            )
        for event in done.started_again:
            who = {"execution": event.execution_id, "attempt": event.attempt, "worker": event.worker}
            logger.warning("run_started_twice", extra=who)

    return BatchConsumer(RECORDER, handle)
