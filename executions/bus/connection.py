"""Connections to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from django.conf import settings
from kombu import Connection
from kombu.exceptions import KombuError

from scheduler_project.kernel.errors import RetryableError

_TIMEOUTS = {"read_timeout", "write_timeout", "socket_timeout", "socket_connect_timeout"}


class BusUnavailable(RetryableError):
    """The broker does not answer."""


def connect(*, confirm: bool = False, heartbeat_s: int = 0, within_s: float | None = None) -> Connection:
    """A connection of its own; ``confirm``: each publish waits until the broker has the message safe.

    ``within_s``: so long it waits for any answer; None: as the settings say.
    """
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "confirm_publish": confirm}
    if within_s is not None:
        options.update({name: within_s for name in options if name in _TIMEOUTS})
    return Connection(
        settings.BROKER_URL,
        transport_options=options,
        heartbeat=heartbeat_s,
        connect_timeout=5 if within_s is None else within_s,
    )


@cache
def broker_errors() -> tuple[type[BaseException], ...]:
    """Every exception by which this transport says that it cannot reach the broker."""
    transport = Connection(settings.BROKER_URL).get_transport_cls()
    return (*transport.connection_errors, *transport.channel_errors, KombuError, OSError)


@contextmanager
def reachable() -> Iterator[None]:
    """Turns every failure to reach the broker into a BusUnavailable."""
    try:
        yield
    except broker_errors() as error:
        raise BusUnavailable(
            f"the broker does not answer: {type(error).__name__}: {error} (BROKER_URL)"
        ) from error


def close_quietly(connection: Connection | None) -> None:
    """Close a connection that may be broken already: what fails then has failed before."""
    if connection is not None:
        with suppress(*broker_errors()):
            connection.release()


def drop(connection: Connection | None) -> None:
    """Let go of a connection that does not work: nothing is sent over it, and no answer is waited for."""
    if connection is not None:
        with suppress(*broker_errors()):
            connection.collect()
