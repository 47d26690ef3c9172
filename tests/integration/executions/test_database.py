"""What the consumers have in hand waits for a PostgreSQL that cannot serve."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from executions.auditor import auditor
from executions.bus.consuming import BatchConsumer
from executions.bus.dead_queue import dead_queue
from executions.bus.publishing import EventPublisher
from executions.database import DatabaseUnavailable
from executions.events import encode
from executions.models import Execution, ExecutionEvent
from executions.recorder import recorder
from executions.store import Store
from tests.integration.making import COMPLETED, make_run, said
from tests.integration.troubles import End, closed, read_only, without_a_table

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("trouble", [read_only, closed, without_a_table])
@pytest.mark.parametrize("service", [recorder, auditor])
def test_a_database_that_cannot_serve_costs_no_event(
    trouble: Callable[[], End], service: Callable[[], BatchConsumer], store: Store
) -> None:
    run = make_run()
    publisher, consumer = EventPublisher(), service()
    publisher.publish(encode([said(COMPLETED, run)]))
    mend = trouble()
    try:
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match="DATABASE_URL"):
                consumer.run_once()
    finally:
        mend()
        connection.close()
    consumer.run_once()
    consumer.close()
    publisher.close()
    with dead_queue(1) as found:
        assert not found.letters
    if service is recorder:
        assert Execution.objects.get(id=run).state == "Completed Normally"
    assert service is recorder or ExecutionEvent.objects.filter(execution_id=run).count() == 1
