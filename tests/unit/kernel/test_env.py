from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from scheduler_project.env import Environment

Read = Callable[[Environment], Any]
READERS: dict[str, Read] = {
    "flag": lambda env: env.flag("X"),
    "integer": lambda env: env.integer("X", 5, minimum=1, maximum=9),
    "choice": lambda env: env.choice("X", "a", ["a", "b"]),
    "duration": lambda env: env.duration("X", "5m", minimum="1s", maximum="1h"),
    "url": lambda env: env.url("X", "", ["redis", "rediss"]),
}


@pytest.mark.parametrize(
    ("reader", "value", "expected"),
    [
        ("flag", "Yes", True),
        ("flag", "on", True),
        ("flag", "0", False),
        ("flag", " off ", False),
        ("integer", "1", 1),
        ("integer", "9", 9),
        ("integer", "007", 7),
        ("choice", "b", "b"),
        ("duration", "90s", timedelta(seconds=90)),
        ("duration", "1h", timedelta(hours=1)),
        ("url", "redis://h:1/2", "redis://h:1/2"),
        ("url", "REDISS://h", "REDISS://h"),
    ],
)
def test_what_is_allowed(reader: str, value: str, expected: object) -> None:
    assert READERS[reader](Environment({"X": value})) == expected


@pytest.mark.parametrize(
    ("reader", "value", "allowed"),
    [
        ("flag", "maybe", "true or false"),
        ("flag", "2", "true or false"),
        ("integer", "0", "a whole number from 1 to 9"),
        ("integer", "10", "a whole number from 1 to 9"),
        ("integer", "-1", "a whole number from 1 to 9"),
        ("integer", "1.5", "a whole number from 1 to 9"),
        ("integer", "²", "a whole number from 1 to 9"),
        ("integer", "٣", "a whole number from 1 to 9"),
        ("integer", "9" * 5000, "a whole number from 1 to 9"),
        ("choice", "c", "one of a, b"),
        ("choice", "A", "one of a, b"),
        ("duration", "soon", "for example 90s"),
        ("duration", "2h", "a duration from 1s to 1h"),
        ("duration", "0s", "a duration from 1s to 1h"),
        ("duration", "999999999w", "0s and 3660d"),
        ("url", "http://h", "redis://…, rediss://…"),
        ("url", "h:6379", "redis://…, rediss://…"),
        ("url", "redis://[::1", "redis://…, rediss://…"),
    ],
)
def test_nonsense_is_refused_with_the_name_and_what_is_allowed(reader: str, value: str, allowed: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        READERS[reader](Environment({"X": value}))
    assert str(refused.value).startswith("X: ")
    assert allowed in str(refused.value)


@pytest.mark.parametrize("variables", [{}, {"X": ""}, {"X": "  "}])
def test_what_is_not_set_or_empty_is_the_default(variables: dict[str, str]) -> None:
    env = Environment(variables)
    values = [read(env) for read in READERS.values()]
    assert values == [False, 5, "a", timedelta(minutes=5), ""]
    assert env.text("X", "d") == "d"
    assert env.names("X", "a, b") == ["a", "b"]


def test_a_refused_url_never_shows_its_password() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        Environment({"X": "http://user:secret@h"}).url("X", "", ["redis"])
    assert "secret" not in str(refused.value)


def test_a_list_is_split_at_its_commas() -> None:
    assert Environment({"X": " a, b ,,c "}).names("X") == ["a", "b", "c"]
