"""A pytest plugin (``-p tests.places``): places of its own for a session, before Django reads its settings.

A database that pytest-django makes from the name in DATABASE_URL, a Redis database, a virtual
host and a home folder; all gone again at the end.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import AbstractContextManager, ExitStack

import pytest

from tests.services import (
    broker_url,
    postgres_url,
    redis_database,
    redis_url,
    sweep_leftovers,
    unique_name,
    virtual_host,
    with_path,
)

_stack = ExitStack()
atexit.register(_stack.close)  # for those that are no session of pytest; after one it is empty


def keep(place: AbstractContextManager[str]) -> str:
    """Enter ``place``, which is left at the end of the session."""
    return _stack.enter_context(place)


def name_places(name: str) -> None:
    """Addresses for a process that runs no test itself: Django's settings ask for some."""
    home = tempfile.mkdtemp(prefix="punctual-test-")
    _stack.callback(shutil.rmtree, home, ignore_errors=True)
    os.environ.update(
        REDIS_URL=redis_url(),
        BROKER_URL=broker_url(),
        DATABASE_URL=with_path(postgres_url(), name),
        PUNCTUAL_HOME=home,
        PUNCTUAL_NAMESPACE=name,
        SECRET_KEY="for the tests only",
        PUNCTUAL_API_RATE="0",  # tests ask more in a minute than a person does
        PUNCTUAL_API_RATE_ANONYMOUS="0",
        PUNCTUAL_LOGIN_RATE="0",
    )
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of Pythons start in a session


def _take_places(name: str) -> None:
    os.environ.update(
        REDIS_URL=_stack.enter_context(redis_database()),
        BROKER_URL=_stack.enter_context(virtual_host(name)),
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    options = early_config.known_args_namespace
    if options.help:
        return
    name, of_xdist = unique_name(), "PYTEST_XDIST_WORKER" in os.environ
    if not of_xdist:
        sweep_leftovers()
    name_places(name)
    if of_xdist or not getattr(options, "numprocesses", None):  # the one that shares out the tests runs none
        _take_places(name)


def pytest_unconfigure(config: pytest.Config) -> None:
    _stack.close()
