"""Database errors that time or an operator may heal, as a RetryableError.

What PostgreSQL says of the values (SQLSTATE classes 22 and 23) is about them and is passed on. All
else is about the database: a server that is away, read-only or full, a deadlock, a missing
privilege, a table that a migration has still to make. The same values may succeed later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import close_old_connections, connection
from django.db.utils import DataError, IntegrityError
from django.db.utils import Error as DatabaseError
from psycopg.errors import UndefinedColumn, UndefinedTable

from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.pulse import PULSE


class DatabaseUnavailable(RetryableError):
    """PostgreSQL cannot serve this now."""


@contextmanager
def database_available() -> Iterator[None]:
    """Turns what is about the database and not about the values into a DatabaseUnavailable."""
    close_old_connections()
    try:
        yield
    except (DataError, IntegrityError):
        raise
    except DatabaseError as error:
        connection.close()
        raise DatabaseUnavailable(
            f"PostgreSQL cannot serve this now: {_said(error)} (DATABASE_URL)"
        ) from error
    PULSE.progress()


def _said(error: DatabaseError) -> str:
    said = str(error).strip().partition("\n")[0]
    unmigrated = isinstance(error.__cause__, UndefinedTable | UndefinedColumn)
    return f"{said}; run 'manage.py migrate'" if unmigrated else said
