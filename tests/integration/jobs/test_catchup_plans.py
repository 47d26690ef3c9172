"""The queries of catching up, asked four times a second: by index, whatever else is in the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from executions.holding import FIRST_HELD, held
from executions.states import State, Trigger
from executions.transitions import insert
from jobs.queries import CATCHUPS
from tests.integration.making import new_run, stored_spec

pytestmark = pytest.mark.django_db
NOW = datetime(2030, 3, 1, 12, tzinfo=UTC)
PARAMETERS: dict[str, Any] = {
    "shards": list(range(16)),
    "first": FIRST_HELD,
    "until": held(NOW),
    "soon": NOW + timedelta(seconds=2),
    "impatient": NOW - timedelta(seconds=10),
    "limit": 100,
}


@pytest.fixture
def many_rows() -> None:
    """Waiting and ended runs, and a few held ones; no statistics, as after a busy minute."""
    spec = stored_spec()
    ended: dict[str, Any] = {"state": State.CANCELLED, "check_at": None, "finished_at": NOW}
    insert([new_run(spec, due=NOW, **ended) for _ in range(2000)])
    insert([new_run(spec, due=NOW + timedelta(seconds=n)) for n in range(2000)])
    insert([new_run(spec, due=NOW, trigger=Trigger.CATCH_UP, check_at=held(NOW)) for _ in range(50)])


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("query", ["candidates", "parked_due", "under_way"])
def test_held_runs_are_found_by_their_index(many_rows: None, query: str, analysed: bool) -> None:
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute("ANALYZE executions_execution")
        cursor.execute("EXPLAIN " + CATCHUPS[query], PARAMETERS)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on executions_execution_default" not in plan, plan  # where the rows are
