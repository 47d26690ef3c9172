"""Database errors that time may heal, as a RetryableError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import close_old_connections, connection
from django.db.utils import InterfaceError, OperationalError

from scheduler_project.kernel.errors import RetryableError


class DatabaseUnavailable(RetryableError):
    """PostgreSQL does not answer."""


@contextmanager
def database_available() -> Iterator[None]:
    """Turns lost connections, deadlocks and a server that is away into a DatabaseUnavailable."""
    close_old_connections()
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        connection.close()
        raise DatabaseUnavailable(f"PostgreSQL does not answer: {error} (DATABASE_URL)") from error
