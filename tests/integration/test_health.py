"""``/healthz/live`` and ``/healthz/ready``: what they say while parts are away, silent or not migrated."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from executions.store import Store, hasty_store
from scheduler_project.kernel.clock import monotonic
from scheduler_project.web import health
from tests.integration.troubles import closed, rename

pytestmark = pytest.mark.django_db(transaction=True)
READY = "/healthz/ready"
ALL_WELL = {"ready": True, "database": "ok", "redis": "ok", "broker": "ok"}


@pytest.fixture(autouse=True)
def fresh(store: Store) -> Iterator[None]:
    health._looks.cache_clear()
    hasty_store.cache_clear()
    yield
    health._looks.cache_clear()
    hasty_store.cache_clear()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def ready() -> tuple[int, dict[str, Any]]:
    answer = Client().get(READY)
    assert answer["Cache-Control"] == "no-store"
    return answer.status_code, answer.json()


def test_with_all_parts_there_it_is_ready() -> None:
    assert ready() == (200, ALL_WELL)


@pytest.mark.parametrize("path", ["/healthz", "/healthz/live", READY])
def test_nobody_need_have_an_address_that_is_allowed_nor_speak_https(path: str, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.PUNCTUAL_API_RATE_ANONYMOUS = 1
    answers = [Client(headers={"host": "10.1.2.3:8000"}).get(path) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5


def test_without_postgresql_it_is_not_ready_and_lives(settings: Settings) -> None:
    end = closed()
    try:
        assert ready() == (503, {**ALL_WELL, "ready": False, "database": health.NO_DATABASE})
        assert Client().get("/healthz/live").content == b"ok\n"
    finally:
        end()
    health._looks.cache_clear()
    assert ready() == (200, ALL_WELL)


def test_without_migrations_it_is_not_ready() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET app = 'away' WHERE app = 'jobs' RETURNING name")
    try:
        assert ready() == (503, {**ALL_WELL, "ready": False, "database": health.UNMIGRATED})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET app = 'jobs' WHERE app = 'away'")


def test_before_the_first_migration_it_is_not_ready() -> None:
    rename("django_migrations", "migrations_away")
    try:
        assert ready()[1]["database"] == health.UNMIGRATED
    finally:
        rename("migrations_away", "django_migrations")


def test_without_redis_and_broker_it_is_ready_and_says_so(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
    settings.BROKER_URL = f"pyamqp://127.0.0.1:{port}//"
    assert ready() == (200, {**ALL_WELL, "redis": health.NO_REDIS, "broker": health.NO_BROKER})


def test_what_hangs_is_waited_for_once_and_in_bounds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    monkeypatch.setattr(health, "WITHIN_S", 1.2)
    settings.REDIS_URL = f"redis://127.0.0.1:{silent}/0"
    settings.BROKER_URL = f"pyamqp://127.0.0.1:{silent}//"
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", str(silent))
    expected = {
        "ready": False,
        "database": health.NO_DATABASE,
        "redis": health.NO_REDIS,
        "broker": health.NO_BROKER,
    }
    began = monotonic()
    assert ready() == (503, expected)
    assert monotonic() - began < 2.0
    assert [ready()[0] for _ in range(3)] == [503] * 3
    assert len([thread for thread in threading.enumerate() if thread.name == "health"]) <= 3


def test_it_tells_no_address_and_no_version() -> None:
    answer = Client().get(READY)
    told = answer.content.decode() + str(answer.headers)
    assert connection.settings_dict["NAME"] not in told
    assert "PostgreSQL 1" not in told
    assert "127.0.0.1" not in told
