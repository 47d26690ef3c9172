"""The auditor: appends every event to the history."""

from __future__ import annotations

from django.db import transaction

from executions.bus.consuming import BatchConsumer
from executions.bus.topology import AUDITOR
from executions.database import database_available
from executions.events import Event
from executions.history import append_history


def auditor() -> BatchConsumer:
    """A consumer that appends each batch in one transaction; an event that is there already stays one row."""

    def handle(events: list[Event]) -> None:
        with database_available(), transaction.atomic():
            append_history(events)

    return BatchConsumer(AUDITOR, handle)
