"""How long PostgreSQL, as the settings ask it to, waits for a process that does nothing any more."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest
from django.db import connection

from scheduler_project.kernel.clock import monotonic

LOCK = 4711


def connect() -> psycopg.Connection[Any]:
    """As every process connects."""
    return psycopg.connect(**connection.get_connection_params())


@pytest.mark.django_db
def test_who_stops_in_a_transaction_holds_nobody_up_for_longer_than_they_wait_for_a_lock() -> None:
    with closing(connect()) as stopped, closing(connect()) as waiting:
        stopped.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        since = monotonic()
        waiting.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])  # an error where it has waited too long
        assert 5 < monotonic() - since < 14
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            stopped.execute("SELECT 1")
