from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from pytest_django import DjangoDbBlocker

from executions.store import Store, default_store
from executions.window import Window
from tests import cleaning
from tests.redis_servers import cluster

# How long one example takes says more about the machine than about the example. CI tries the same examples in
# each run, so that what fails there is what a change has broken; elsewhere each run tries others.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("suite")
# Hypothesis draws from constants of the modules that are loaded, which are others in each process of a run.
vars(providers)["_get_local_constants"] = Constants


cleaning.install()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """pytest-django's, and then what its migrations have made is remembered."""
    with django_db_blocker.unblock():
        cleaning.remember()


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster"), replicas=0) as found:
        yield found.url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that says ``ON_A_CLUSTER_TOO = True`` is run on one Redis and on a cluster."""
    if getattr(metafunc.module, "ON_A_CLUSTER_TOO", False) and "store" in metafunc.fixturenames:
        metafunc.parametrize("store", ["one", "cluster"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """This session's Redis, or a cluster of three; empty."""
    if getattr(request, "param", "one") == "one":
        found = default_store()
    else:
        found = Store(request.getfixturevalue("cluster_url"), "punctual")
    found.delete_namespace()
    yield found
    found.delete_namespace()


@pytest.fixture
def window(store: Store) -> Window:
    return Window(store)
