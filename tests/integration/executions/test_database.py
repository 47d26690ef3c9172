"""A PostgreSQL that answers, and cannot serve: what the consumers have in hand waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from executions.auditor import auditor
from executions.bus.consuming import BatchConsumer
from executions.bus.dead_letters import dead_letters
from executions.bus.publishing import EventPublisher
from executions.database import DatabaseUnavailable
from executions.events import encode
from executions.models import Execution, ExecutionEvent
from executions.recorder import recorder
from executions.store import Store
from tests.integration.making import COMPLETED, make_run, said

pytestmark = pytest.mark.django_db(transaction=True)

ALTER = "ALTER DATABASE {} "
RENAME = "ALTER TABLE executions_{} RENAME TO {}"


@contextmanager
def administrator(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Autocommit, and allowed to write whatever the database's defaults say."""
    given = {**connection.get_connection_params(), "dbname": database}
    for name in ("cursor_factory", "context", "prepare_threshold"):
        given.pop(name, None)
    with psycopg.connect(**given, autocommit=True) as made:
        made.execute("SET default_transaction_read_only = off")
        yield made


def alter(what: str) -> None:
    """Change the test's database from outside, and end its connections, so that the change holds for all."""
    name = connection.settings_dict["NAME"]
    with administrator("postgres") as admin:
        admin.execute(sql.SQL(ALTER + what).format(sql.Identifier(name)))
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def rename(old: str, new: str) -> None:
    with administrator(connection.settings_dict["NAME"]) as admin:
        admin.execute(f"ALTER TABLE {old} RENAME TO {new}")


def read_only() -> Callable[[], None]:
    alter("SET default_transaction_read_only = on")
    return lambda: alter("RESET default_transaction_read_only")


def closed() -> Callable[[], None]:
    alter("ALLOW_CONNECTIONS false")
    return lambda: alter("ALLOW_CONNECTIONS true")


def without_a_table() -> Callable[[], None]:
    tables = ("executions_execution", "executions_executionevent")
    for table in tables:
        rename(table, f"{table}_away")
    connection.close()

    def mend() -> None:
        for table in tables:
            rename(f"{table}_away", table)

    return mend


@pytest.mark.parametrize("trouble", [read_only, closed, without_a_table])
@pytest.mark.parametrize("service", [recorder, auditor])
def test_a_database_that_cannot_serve_costs_no_event(
    trouble: Callable[[], Callable[[], None]], service: Callable[[], BatchConsumer], store: Store
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
    with dead_letters(1) as letters:
        assert not letters
    if service is recorder:
        assert Execution.objects.get(id=run).state == "Completed Normally"
    assert service is recorder or ExecutionEvent.objects.filter(execution_id=run).count() == 1
