"""How the tests name and find their services (tests/services.py): the part that needs none of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests import services

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_the_environment_says_where_the_services_are() -> None:
    env = {
        "DATABASE_URL": "postgresql://db.example/x",
        "REDIS_URL": "redis://cache.example/3",
        "BROKER_URL": "amqp://mq.example//",
        "DOCKER_HOST": "tcp://engine.example:2375",
    }

    assert services.postgres_url(env) == "postgresql://db.example/postgres"
    assert services.redis_url(env) == "redis://cache.example/3"
    assert services.broker_url(env) == "pyamqp://mq.example//"
    assert services.docker_host(env) == "tcp://engine.example:2375"


def test_without_it_they_are_on_the_usual_local_ports() -> None:
    assert services.redis_url({}) == "redis://127.0.0.1:6379/0"
    assert services.broker_url({}) == "pyamqp://guest:guest@127.0.0.1:5672//"
    assert services.docker_host({}) == "unix:///var/run/docker.sock"
    assert services.postgres_url({}) in services.POSTGRES_URLS


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/mine"),
        ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379/mine"),
        ("pyamqp://guest:g%2Fuest@[::1]:5672//", "pyamqp://guest:g%2Fuest@[::1]:5672/mine"),
        ("postgresql:///postgres?host=/run/postgresql", "postgresql:///mine?host=/run/postgresql"),
        ("postgresql://me@db:5433/x?sslmode=require", "postgresql://me@db:5433/mine?sslmode=require"),
    ],
)
def test_only_the_path_of_an_address_is_replaced(url: str, other: str) -> None:
    assert services.with_path(url, "mine") == other


def test_names_are_unique_and_fit_into_every_service() -> None:
    names = {services.unique_name(NOW) for _ in range(1000)}

    assert len(names) == 1000
    assert all(name.isascii() and name.isidentifier() and len(name) <= 58 for name in names)


@pytest.mark.parametrize(
    ("name", "leftover"),
    [
        (services.unique_name(NOW - timedelta(hours=4)), True),
        ("test_" + services.unique_name(NOW - timedelta(hours=4)), True),
        (services.unique_name(NOW - timedelta(hours=2)), False),
        ("postgres", False),
        ("punctual_test_of_mine", False),
        ("somebodys_punctual_test_1_x", False),
    ],
    # The names are new in every process: as ids they would make two processes collect different tests.
    ids=["old", "old copy of Django's", "young", "not ours", "nearly ours", "somebody's"],
)
def test_only_old_names_of_ours_are_left_over(name: str, leftover: bool) -> None:
    assert services.is_leftover(name, timedelta(hours=3), NOW) is leftover
