"""For how long an outcome keeps duplicates out, once it is recorded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from executions.claims import Claims, claim_key
from executions.ids import execution_id
from executions.scheduling import outcomes_heard
from executions.store import Store
from scheduler_project.kernel.clock import utcnow


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("broker", "least", "most"),
    [
        ("pyamqp://guest@127.0.0.1//", timedelta(minutes=1), timedelta(minutes=2)),
        ("redis://127.0.0.1/0", timedelta(minutes=59), timedelta(hours=1)),
    ],
)
def test_it_outlasts_what_the_broker_may_give_out_a_second_time(
    store: Store, settings: Any, broker: str, least: timedelta, most: timedelta
) -> None:
    settings.BROKER_URL = broker
    settings.PUNCTUAL_ENQUEUE_TIMEOUT = timedelta(minutes=1)
    run, worker = execution_id(uuid4(), utcnow(), "schedule", 3), Claims(store, "w", timedelta(seconds=30))
    worker.claim(run, 1)
    worker.finish(run, 1, b"outcome")
    outcomes_heard({(run, 1)})
    (left_ms,) = store.batch(lambda pipe: pipe.pttl(claim_key(store, run)))
    assert least < timedelta(milliseconds=left_ms) <= most
