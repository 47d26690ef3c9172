"""The schema of REST says everything: each address, each field, each error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema

from scheduler_project.documentation import schema

PREFIX = "api/v1/"
PAGES = {"docs", "redoc"}
METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return schema()


def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[tuple[str, Any]]:
    """(address, view) of everything below ``patterns``."""
    for pattern in patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        else:
            yield address, pattern.callback


def answered() -> set[tuple[str, str]]:
    """(method, address as the schema writes it) of all that is answered below /api/v1/ but the pages."""
    found = set()
    for address, view in routes(get_resolver().url_patterns):
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", address)
        if path.startswith(PREFIX) and path.removeprefix(PREFIX) not in PAGES:
            found |= {(name, f"/{path}") for name in METHODS if hasattr(view.view_class, name)}
    return found


def test_the_schema_is_valid_and_has_no_warnings(made: dict[str, Any]) -> None:
    validate_schema(made)
    assert not GENERATOR_STATS, [*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache]


def test_everything_that_the_api_answers_to_is_in_the_schema(made: dict[str, Any]) -> None:
    """Whoever adds an address decorates its methods with ``@documented`` (executions/api/documenting.py)."""
    known = {(method, path) for path, methods in made["paths"].items() for method in methods}
    assert answered() - known == set()
    assert known - answered() == set()


def operations(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_every_operation_has_a_summary_a_description_and_a_name_of_its_own(made: dict[str, Any]) -> None:
    wrong = [name for name, said in operations(made) if not (said.get("summary") and said.get("description"))]
    assert wrong == []
    names = [said["operationId"] for _, said in operations(made)]
    assert sorted(set(names)) == sorted(names)


def test_every_parameter_and_every_header_has_a_description(made: dict[str, Any]) -> None:
    wrong: list[tuple[str, ...]] = []
    for name, said in operations(made):
        wrong += [(name, p["name"]) for p in said.get("parameters", []) if not p.get("description")]
        for status, answer in said["responses"].items():
            wrong += [
                (name, status, h) for h, it in answer.get("headers", {}).items() if not it["description"]
            ]
    assert wrong == []


def test_every_field_has_a_description(made: dict[str, Any]) -> None:
    wrong = [
        path for path, field in fields("", made["components"]["schemas"]) if not field.get("description")
    ]
    assert wrong == []


def fields(place: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, schema) of every property of every object below ``found``."""
    if isinstance(found, list):
        for number, item in enumerate(found):
            yield from fields(f"{place}[{number}]", item)
    elif isinstance(found, dict):
        for name, item in (found.get("properties") or {}).items():
            yield f"{place}.{name}", item
        for name, item in found.items():
            if name not in ("default", "examples", "enum", "const"):
                yield from fields(f"{place}.{name}", item)


def test_every_error_is_a_problem(made: dict[str, Any]) -> None:
    for name, said in operations(made):
        errors = {status: answer for status, answer in said["responses"].items() if status >= "400"}
        assert {"400", "401", "403", "429", "500", "503"} <= set(errors), name
        assert all(list(answer["content"]) == ["application/problem+json"] for answer in errors.values()), (
            name
        )
