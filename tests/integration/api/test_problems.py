"""What is wrong with a request is said as a problem document, whatever it is; never a stack trace."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from executions.store import default_store
from jobs.models import Job
from scheduler_project.kernel.clock import monotonic
from tests.example_body import BODY
from tests.integration.api.conftest import create, problem_of
from tests.integration.proxy import TcpProxy, proxy_before
from tests.integration.troubles import End, closed, read_only
from tests.services import with_path

pytestmark = pytest.mark.django_db

JSON = "application/json"


def post(client: APIClient, body: str | bytes, content_type: str = JSON) -> Any:
    return client.generic("POST", "/api/v1/jobs", body, content_type=content_type)  # type: ignore[arg-type]


def with_field(name: str, value: str) -> str:
    """A body whose field ``name`` is this JSON text."""
    return json.dumps({**BODY, name: "@"}).replace('"@"', value)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"1",
        b"\xff\xfe",
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 500 + b"]" * 500,
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": ' + b"9" * 10_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_object_is_a_400(root: APIClient, body: bytes) -> None:
    assert problem_of(post(root, body), 400)["detail"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", '"a\\u0000b"'),
        ("name", '"\\ud800"'),
        ("name", "{}"),
        ("type", '["Python"]'),
        ("type", "{}"),
        ("command", '"\\udfff"'),
        ("command", '"{{"'),
        ("command", '"\'"'),
        ("schedule", '{"cron": "\\ud800"}'),
        ("schedule", '{"cron": "0 0 * * *", "timezone": "a\\u0000"}'),
        ("schedule", '{"cron": "0 0 * * *", "timezone": "../../etc/passwd"}'),
        ("schedule", '{"at": "9999-12-31T23:59:59Z"}'),
        ("schedule", '{"at": "0001-01-01T00:00:00+14:00"}'),
        ("schedule", '{"every": 1e400}'),
        ("schedule", '{"after": "99999999999999999d"}'),
        ("schedule", "[]"),
        ("schedule", "1e308"),
        ("parameters", '{"a": "\\u0000"}'),
        ("parameters", '{"a\\ud800": 1}'),
        ("parameters", '{"a": 1e400}'),
        ("parameters", '{"a": ' + "[" * 100 + "]" * 100 + "}"),
        ("parameters", '{"a": "' + "x" * 70_000 + '"}'),
        ("env", '{"a=b": "c"}'),
        ("retries", "1" + "0" * 300),
        ("retries", "1e2"),
        ("retryDelay", "-1"),
        ("retryDelay", "1" + "0" * 3000),
        ("timeout", "0"),
        ("timeout", "true"),
        ("owner", '"\\u0000"'),
        ("owner", '"' + "x" * 100_000 + '"'),
        ("\\ud800", "1"),
    ],
)
def test_a_hostile_value_is_a_wrong_field(root: APIClient, name: str, value: str) -> None:
    body = with_field(name, value).replace("\\\\ud800", "\\ud800")
    errors = problem_of(post(root, body), 400)["errors"]
    field = name.replace("\\ud800", "\N{REPLACEMENT CHARACTER}")
    assert {path.partition(".")[0] for path in errors} == {field}
    assert not Job.objects.exists()


def test_unusual_but_sound_values_are_taken(root: APIClient) -> None:
    odd = {"a": 10**400, "b": -0.0, "c": 1e-300, "d": "\U0001f600 ü", "e": [[[[[{}]]]]], "f": None}
    made = create(root, name="\U0001f600", parameters=odd)
    read = root.get(f"/api/v1/jobs/{made['jobId']}").json()
    assert read["parameters"] == odd
    assert read["name"] == "\U0001f600"


def test_a_body_of_a_megabyte_is_read_and_one_of_many_is_refused(root: APIClient) -> None:
    assert set(problem_of(post(root, with_field("name", '"' + "x" * (1 << 20) + '"')), 400)["errors"]) == {
        "name"
    }
    many = json.dumps({f"field{number}": number for number in range(60_000)})
    refused = post(root, many)
    assert len(problem_of(refused, 400)["errors"]) == 10
    assert "So it is with 59995 more." in refused.content.decode()
    assert len(refused.content) < 4000
    problem_of(post(root, b" " * (5 << 20)), 413)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_another_content_type_is_a_415(root: APIClient, kind: str) -> None:
    assert kind in problem_of(post(root, b"name=x", kind), 415)["detail"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png", "nonsense"])
def test_the_accept_header_does_not_matter(root: APIClient, accept: str) -> None:
    assert root.get("/api/v1/jobs", headers={"Accept": accept})["Content-Type"] == JSON


@pytest.mark.parametrize(
    "path",
    [
        "jobs/1",
        "jobs/not-a-uuid",
        "jobs/%00",
        "jobs/0193e4a0-0000-7000-8000-00000000000g",
        "jobs/0193e4a0-0000-7000-8000-000000000000",
        "executions/0193e4a0-0000-7000-8000-000000000000",
        "executions/ffffffff-ffff-ffff-ffff-ffffffffffff",
        "executions/00000000-0000-0000-0000-000000000000/events",
        "executions/x/logs",
    ],
)
def test_what_is_not_there_is_a_404(root: APIClient, path: str) -> None:
    problem_of(root.get(f"/api/v1/{path}"), 404)


@pytest.mark.parametrize("method", ["get", "post", "delete"])
@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/v1/", "/api/v1/jobs/", "/api/v2/jobs", "/api/v1/x/%ff"]
)
def test_an_unknown_address_is_a_404_for_everybody(anonymous: APIClient, path: str, method: str) -> None:
    strict = APIClient(enforce_csrf_checks=True)
    problem_of(getattr(strict, method)(path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("put", "jobs", {"GET", "POST"}),
        ("put", "jobs/0193e4a0-0000-7000-8000-000000000000", {"GET", "PATCH", "DELETE"}),
        ("get", "jobs/0193e4a0-0000-7000-8000-000000000000/run", {"POST"}),
        ("get", "executions/0193e4a0-0000-7000-8000-000000000000/cancel", {"POST"}),
        ("post", "executions", {"GET"}),
    ],
)
def test_a_wrong_method_is_a_405_that_says_which_are_right(
    root: APIClient, method: str, path: str, allowed: set[str]
) -> None:
    answer = getattr(root, method)(f"/api/v1/{path}")
    problem_of(answer, 405)
    assert set(answer["Allow"].split(", ")) - {"HEAD", "OPTIONS"} == allowed


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [
        ("jobs", "colour=red", "colour"),
        ("jobs", "limit=0", "limit"),
        ("jobs", "limit=101", "limit"),
        ("jobs", "limit=%D9%A3", "limit"),
        ("jobs", "limit=1&limit=2", "limit"),
        ("jobs", "name=%00", "name"),
        ("jobs", "owner=", "owner"),
        ("jobs", "cursor=x", "cursor"),
        ("jobs", "cursor=%FF%FE", "cursor"),
        ("executions", "job=1", "job"),
        ("executions", "status=Done", "status"),
        ("executions", "status=", "status"),
        ("executions", "from=yesterday", "from"),
        ("executions", "from=2026-01-01T00:00:00", "from"),
        ("executions", "from=1969-12-31T23:59:59Z", "from"),
        ("executions", "from=3000-01-01T00:00:00Z", "from"),
        ("executions", "to=9999-12-31T23:59:59Z", "to"),
        ("executions", "from=0001-01-01T00:00:00%2B14:00", "from"),
        ("executions", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("executions/0193e4a0-0000-7000-8000-000000000000/logs", "attempt=0", "attempt"),
        ("executions/0193e4a0-0000-7000-8000-000000000000/logs", "attempt=99999999999", "attempt"),
        ("executions/0193e4a0-0000-7000-8000-000000000000", "verbose=1", "verbose"),
    ],
)
def test_a_wrong_query_parameter_is_named(root: APIClient, path: str, query: str, name: str) -> None:
    assert set(problem_of(root.get(f"/api/v1/{path}?{query}"), 400)["errors"]) == {name}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trouble", [read_only, closed])
def test_a_database_that_cannot_serve_is_a_503_that_says_when_to_try_again(
    root: APIClient, trouble: Callable[[], End]
) -> None:
    end = trouble()
    try:
        answer = post(root, json.dumps(BODY))
    finally:
        end()
        connection.close()
    body = problem_of(answer, 503)
    assert int(answer["Retry-After"]) > 0
    assert "SQL" not in json.dumps(body)


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpProxy]:
    """A proxy before PostgreSQL, through which Django connects from its next connection on."""
    with psycopg.connect(database_url()) as direct:
        proxy = TcpProxy("127.0.0.1", direct.info.port)
    for name, value in (("HOST", "127.0.0.1"), ("PORT", proxy.port)):
        monkeypatch.setitem(connection.settings_dict, name, value)
    connection.close()
    yield proxy
    connection.close()
    proxy.close()


def database_url() -> str:
    """The address of the tests' own database."""
    return with_path(settings.DATABASE_URL, str(connection.settings_dict["NAME"]))


def assert_says_when_to_try_again(answer: Any) -> None:
    body = problem_of(answer, 503)
    assert int(answer["Retry-After"]) > 0
    assert "connection" not in json.dumps(body)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_a_503_that_says_when_to_try_again(
    root: APIClient, postgres: TcpProxy
) -> None:
    postgres.go_away()
    assert_says_when_to_try_again(post(root, json.dumps(BODY)))
    postgres.come_back()
    connection.close()  # a server does between requests
    create(root)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_a_page_in_the_admin(root: APIClient, postgres: TcpProxy) -> None:
    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.get(is_superuser=True))
    postgres.go_away()
    answer = browser.get("/admin/")
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert "Try again in a few seconds" in answer.content.decode()
    assert "connection" not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_away_in_the_middle_is_a_503_and_nothing_is_saved(
    root: APIClient, postgres: TcpProxy
) -> None:
    with psycopg.connect(database_url()) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("LOCK TABLE executions_execution")
        cutting = pool.submit(cut_once_one_waits, postgres)
        answer = post(root, json.dumps(BODY))
        cutting.result()
    assert_says_when_to_try_again(answer)
    connection.close()  # a server does between requests
    assert not Job.objects.exists()
    create(root)


def cut_once_one_waits(postgres: TcpProxy) -> None:
    """Cut all connections when one of them waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    deadline = monotonic() + 30
    with psycopg.connect(database_url(), autocommit=True) as watcher:
        while not watcher.execute(waiting).fetchone():
            assert monotonic() < deadline
            time.sleep(0.02)
    postgres.cut()


@pytest.mark.django_db(transaction=True)
def test_while_redis_is_away_a_job_is_created_all_the_same(
    root: APIClient, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with proxy_before(settings.REDIS_URL) as (redis, settings.REDIS_URL):
        default_store.cache_clear()
        redis.go_away()
        create(root, schedule="now")
    default_store.cache_clear()
    assert Job.objects.count() == 1
    assert "push_lost" in caplog.text


def test_our_own_fault_is_a_500_with_a_reference_that_the_log_has(
    root: APIClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("an internal detail")

    monkeypatch.setattr("jobs.services.insert", fail)
    with caplog.at_level(logging.ERROR, "scheduler_project.problems"):
        body = problem_of(post(root, json.dumps(BODY)), 500)
    (line,) = [found for found in caplog.records if found.getMessage() == "request_failed"]
    assert line.__dict__["reference"] == body["reference"]
    assert line.exc_info is not None
    assert "internal" not in json.dumps(body)
    assert not Job.objects.exists()


def test_an_error_outside_the_views_is_a_problem_too(
    root: APIClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("an internal detail")

    root.raise_request_exception = False
    monkeypatch.setattr("django.contrib.sessions.middleware.SessionMiddleware.process_request", fail)
    body = problem_of(root.get("/api/v1/jobs"), 500)
    assert body["reference"] in {found.__dict__.get("reference") for found in caplog.records}
    page = root.get("/admin/")
    assert page.status_code == 500
    assert "problem" not in page["Content-Type"]


def test_a_host_that_is_not_allowed_is_a_400(root: APIClient) -> None:
    problem_of(root.get("/api/v1/jobs", headers={"Host": "evil.example"}), 400)


def test_the_root_leads_to_the_admin_and_the_process_says_that_it_lives(anonymous: APIClient) -> None:
    assert anonymous.get("/")["Location"] == "/admin/"
    assert anonymous.get("/healthz").content == b"ok\n"
    assert "problem" not in anonymous.get("/nowhere")["Content-Type"]
