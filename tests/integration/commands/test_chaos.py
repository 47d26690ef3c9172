"""``manage.py chaos`` where it cannot begin: one line says what is wrong, and nothing is left behind."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from psycopg import sql

from tests import services


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--runs", "49"], "argument --runs: '49' is not a whole number from 50 to 1000000"),
        (["--runs", "many"], "argument --runs: 'many' is not a whole number from 50 to 1000000"),
        (["--minutes", "0"], "argument --minutes: '0' is not a number from 0.25 to 1440"),
        (["--minutes", "nan"], "argument --minutes: 'nan' is not a number from 0.25 to 1440"),
        (["--seed", "-1"], "argument --seed: '-1' is not a whole number from 0 to 4294967295"),
        (["--broker", "kafka"], "argument --broker: invalid choice: 'kafka'"),
    ],
)
def test_nonsense_is_refused(words: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=re.escape(complaint)):
        call_command("chaos", *words)


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        (
            "DATABASE_URL",
            "postgresql://nobody@127.0.0.1:1/x",
            "DATABASE_URL: no database of its own can be made",
        ),
        ("REDIS_URL", "redis://127.0.0.1:1/0", "REDIS_URL: Redis does not answer"),
        ("BROKER_URL", "pyamqp://no:body@192.0.2.1:1//", "BROKER_URL: no way to make a virtual host"),
        ("BROKER_URL", "redis://127.0.0.1:6379/0", "BROKER_URL: it is no RabbitMQ"),
    ],
)
def test_a_server_where_it_can_make_no_place_is_named(
    variable: str, value: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(CommandError, match=re.escape(complaint)) as refused:
        call_command("chaos", "--runs", "50", "--minutes", "0.25", "--broker", "rabbitmq")
    assert refused.value.returncode == 4


def test_a_role_that_may_make_no_database_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    role = services.unique_name()
    with psycopg.connect(services.postgres_url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw'").format(sql.Identifier(role)))
        try:
            there = urlsplit(services.postgres_url())
            monkeypatch.setenv(
                "DATABASE_URL", f"postgresql://{role}:pw@{there.hostname}:{there.port or 5432}/x"
            )
            with pytest.raises(CommandError, match="CREATEDB"):
                call_command("chaos", "--runs", "50", "--minutes", "0.25")
        finally:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
