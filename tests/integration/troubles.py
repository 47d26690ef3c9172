"""A PostgreSQL that answers, and cannot serve: each trouble begins when it is called and returns its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

End = Callable[[], None]
ALTER = "ALTER DATABASE {} "


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


def read_only() -> End:
    alter("SET default_transaction_read_only = on")
    return lambda: alter("RESET default_transaction_read_only")


def closed() -> End:
    alter("ALLOW_CONNECTIONS false")
    return lambda: alter("ALLOW_CONNECTIONS true")


def without_a_table() -> End:
    tables = ("executions_execution", "executions_executionevent")
    for table in tables:
        rename(table, f"{table}_away")
    connection.close()

    def mend() -> None:
        for table in tables:
            rename(f"{table}_away", table)

    return mend
