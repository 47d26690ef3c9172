"""A pytest plugin (``-p tests.places``): places of its own for a session, before Django reads its settings.

A database that pytest-django makes from the name in DATABASE_URL, a Redis database, a virtual
host and a home folder; all gone again at the end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import AbstractContextManager, ExitStack

import pytest

from tests.services import postgres_url, redis_database, sweep_leftovers, unique_name, virtual_host, with_path

_stack = ExitStack()


def keep(place: AbstractContextManager[str]) -> str:
    """Enter ``place``, which is left at the end of the session."""
    return _stack.enter_context(place)


def _take_places() -> None:
    name = unique_name()
    home = tempfile.mkdtemp(prefix="punctual-test-")
    _stack.callback(shutil.rmtree, home, ignore_errors=True)
    database = with_path(postgres_url(), name)
    os.environ.update(
        REDIS_URL=_stack.enter_context(redis_database()),
        BROKER_URL=_stack.enter_context(virtual_host(name)),
        DATABASE_URL=database,
        PUNCTUAL_HOME=home,
        PUNCTUAL_NAMESPACE=name,
        SECRET_KEY="for the tests only",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if not early_config.known_args_namespace.help:
        sweep_leftovers()
        _take_places()


def pytest_unconfigure(config: pytest.Config) -> None:
    _stack.close()
