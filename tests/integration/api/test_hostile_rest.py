"""Ten thousand random and hostile requests: REST answers each, none with a fault or a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.test.client import FakePayload
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from scheduler_project.documentation import schema
from tests.example_body import BODY
from tests.integration.api.conftest import create

PARTS = 4
EXAMPLES = 50
REQUESTS = 50  # of an example, mixed of MIXED of each part: to draw a part takes longer than to ask
MIXED = 5
SEED = 20261130

PATHS = sorted(path for path in schema()["paths"] if path != "/api/v1/schema")
METHODS = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "BREW"]
NIL = "00000000-0000-0000-0000-000000000000"
TEXTS = [
    "",
    "0",
    "-1",
    "9" * 40,
    "1e999",
    "true",
    "null",
    "NaN",
    "a\0b",
    "\r\nX: y",
    "\ufffe",
    "\u202e",
    "\u0663",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00:00Z",
    "2026-12-24T18:00:00Z",
    "1970-01-01T00:00:00Z",
    NIL,
    NIL.upper(),
    f"{{{NIL}}}",
    "' OR 1=1 --",
    "../../etc/passwd",
    "%00",
    "%ff",
    "{{ 7 * 7 }}",
    "{% for x in range(10**9) %}x{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "* * * * *",
    "*/0 * * * *",
    "0 0 30 2 *",
    "99999999999d",
    "1e9s",
    "x" * 20_000,
    "<script>alert(1)</script>",
    "data-engineering",
    "etl",
    "Active",
    "Active,Cancelled",
    "id,name",
    "-name",
]
RAW = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"{}{}",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b'{"a":1,"a":2}',
    b'{"name":"\\ud800"}',
    b'{"\\udfff":1}',
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":1e999}',
    b'{"a":-0.0}',
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":' * 70 + b"1" + b"}" * 70,
    b"[" * 100_000,
    b'{"a":"' + b"x" * 70_000 + b'"}',
    b"a=1&b=2",
    b"<?xml version='1.0'?><a/>",
    b"--x\r\n\r\n--x--",
]
TYPES = [
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "\0",
]
HEADERS = [
    "HTTP_ACCEPT",
    "HTTP_IF_MATCH",
    "HTTP_IDEMPOTENCY_KEY",
    "HTTP_RANGE",
    "HTTP_LAST_EVENT_ID",
    "HTTP_IF_NONE_MATCH",
    "HTTP_X_HTTP_METHOD_OVERRIDE",
    "HTTP_CONTENT_ENCODING",
    "HTTP_ORIGIN",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_CSRFTOKEN",
    "HTTP_EXPECT",
    "CONTENT_LENGTH",
]

texts = st.sampled_from(TEXTS) | st.text(max_size=12)
values = st.recursive(
    texts | st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True, slots=True)
class Hostile:
    method: str
    path: str
    named: str | None
    query: list[tuple[str, str]]
    body: bytes
    environ: dict[str, str]


def names_of() -> tuple[list[str], list[str]]:
    """(query parameters, fields of bodies) that the schema knows."""
    said = schema()
    parameters = {
        parameter["name"]
        for methods in said["paths"].values()
        for operation in methods.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    }
    fields = {
        name for shape in said["components"]["schemas"].values() for name in shape.get("properties", {})
    }
    return sorted(parameters - {"follow"}), sorted(fields)


PARAMETERS, FIELDS = names_of()
bodies = (
    st.sampled_from(RAW)
    | st.binary(max_size=30)
    | st.dictionaries(st.sampled_from(FIELDS), values, max_size=3).map(
        as_json := lambda found: json.dumps(found).encode()
    )
    | st.dictionaries(st.sampled_from(FIELDS), values, max_size=2).map(
        lambda found: as_json({**BODY, **found})
    )
)
environs = st.dictionaries(st.sampled_from(HEADERS), texts, max_size=2).flatmap(
    lambda found: st.fixed_dictionaries(
        {
            **{name: st.just(value) for name, value in found.items()},
            "CONTENT_TYPE": st.sampled_from(["application/json"] * 4 + TYPES),
            "HTTP_COOKIE": st.sampled_from(
                ["", "sessionid=x", "sessionid=\0; csrftoken=" + "y" * 99, "=;;=", "a" * 9000]
            ),
            "HTTP_AUTHORIZATION": st.sampled_from(
                ["yes"] * 8 + ["", "Token", "Token \0", "Bearer é", "Basic eDp5", "Token a b"]
            ),
        }
    )
)
queries = st.lists(st.tuples(st.sampled_from(PARAMETERS) | texts, texts), max_size=3)
mixtures = st.tuples(
    *(st.lists(part, min_size=MIXED, max_size=MIXED) for part in (queries, bodies, environs)),
    st.lists(st.none() | texts, min_size=MIXED, max_size=MIXED),
    st.integers(0, 2**64),
)


def mixed(mixture: tuple[Any, ...]) -> list[Hostile]:
    """Requests of these queries, bodies, headers and names in addresses, each with each as it happens."""
    found_queries, found_bodies, found_environs, names, number = mixture
    pick = Random(number)
    return [
        Hostile(
            method=pick.choice(METHODS[:4] * 4 + METHODS),
            path=pick.choice(PATHS),
            named=pick.choice([None, *names]),
            query=pick.choice(found_queries),
            body=pick.choice(found_bodies),
            environ=pick.choice(found_environs),
        )
        for _ in range(REQUESTS)
    ]


@pytest.fixture
def ask(root: APIClient, member: APIClient, settings: Any) -> Callable[[Hostile], Any]:
    """What is answered to a request, whose changes are undone."""
    settings.PUNCTUAL_API_RATE = settings.PUNCTUAL_API_RATE_ANONYMOUS = 0
    made = create(member)
    root.post("/api/v1/pools", {"name": "etl", "slots": 3}, format="json")
    task = {"name": "report", "type": "Script", "command": "true"}
    task_id = root.post("/api/v1/tasks", task, format="json").json()["id"]
    token = root._credentials["HTTP_AUTHORIZATION"]  # type: ignore[attr-defined]
    known = {
        "job_id": made["jobId"],
        "execution_id": made["firstExecutionId"],
        "name": "etl",
        "task_id": task_id,
    }
    browser = Client(raise_request_exception=False)

    def answer(request: Hostile) -> Any:
        environ = environ_of(request, known, token)
        own = transaction.atomic()
        own._from_testcase = True  # type: ignore[attr-defined]  # a durable transaction may begin within it
        with own:
            found = browser.request(**environ)
            transaction.set_rollback(True)
        return found

    return answer


def environ_of(request: Hostile, known: dict[str, str], token: str) -> dict[str, Any]:
    """As a WSGI server gives it: texts are bytes as Latin-1, a header has no line breaks."""
    path = request.path
    for name, value in known.items():
        path = path.replace(f"{{{name}}}", value if request.named is None else request.named)
    query = "&".join(f"{name}={value}" for name, value in request.query)
    headers = {
        name: wire(value.replace("\r", "").replace("\n", "")) for name, value in request.environ.items()
    }
    if headers["HTTP_AUTHORIZATION"] == "yes":
        headers["HTTP_AUTHORIZATION"] = token
    return {
        "CONTENT_LENGTH": str(len(request.body)),
        **headers,
        "REQUEST_METHOD": request.method,
        "PATH_INFO": wire(path),
        "QUERY_STRING": wire(query),
        "wsgi.input": FakePayload(request.body),
    }


def wire(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_hostile_requests_make_no_fault(part: int, ask: Callable[[Hostile], Any]) -> None:
    asked, statuses = 0, dict[int, int]()
    print(f"hypothesis seed {SEED + part}")  # noqa: T201

    @seed(SEED + part)
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mixtures)
    def run(mixture: tuple[Any, ...]) -> None:
        nonlocal asked
        for request in mixed(mixture):
            answer = ask(request)
            content = b"" if answer.streaming else answer.content
            assert answer.status_code < 500, (request, content[:500])
            assert b"Traceback" not in content, request
            asked += 1
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1

    run()
    assert asked >= EXAMPLES * REQUESTS
    assert {200, 400, 401, 404, 405} <= set(statuses), statuses
