"""What the web server does before any view: headers, HTTPS, origins of others, refused logins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from executions.store import Store
from scheduler_project.standalone.options import BASE_DIR
from scheduler_project.standalone.programs import MAX_BODY_BYTES
from tests.web import web_server

pytestmark = pytest.mark.django_db

LOGIN = "/admin/login/"
CORS = "corsheaders.middleware.CorsMiddleware"
PRODUCTION = {
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ALLOWED_HOSTS": "jobs.example.org",
    "PUNCTUAL_HTTPS": "true",
    "PUNCTUAL_PROXIES": "1",
}


def policy_of(answer: object) -> dict[str, list[str]]:
    directives = [part.split() for part in answer["Content-Security-Policy"].split(";")]  # type: ignore[index]
    return {name: sources for name, *sources in directives}


# --- a deployment ---------------------------------------------------------------------------


def check_deploy(**changed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=BASE_DIR,
        env={**os.environ, **PRODUCTION, **changed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_django_finds_nothing_to_say_against_a_production_deployment() -> None:
    done = check_deploy()
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_that_check_would_say_it() -> None:
    done = check_deploy(PUNCTUAL_HTTPS="false", DEBUG="true")
    assert done.returncode == 1
    assert {"security.W004", "security.W008", "security.W012", "security.W018"} <= set(
        re.findall(r"security\.W\d+", done.stderr)
    )


# --- HTTPS ----------------------------------------------------------------------------------


@pytest.fixture
def https(settings: Settings) -> Client:
    """As PUNCTUAL_HTTPS sets it."""
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.SECURE_HSTS_SECONDS = 3600
    return Client(headers={"host": "localhost"})


def test_with_https_nothing_but_the_sign_of_life_is_answered_without(https: Client) -> None:
    answer = https.get("/api/v1/jobs")
    assert (answer.status_code, answer["Location"]) == (301, "https://localhost/api/v1/jobs")
    assert https.get("/healthz").status_code == 200


def test_with_https_cookies_go_over_nothing_else_and_browsers_are_told(https: Client) -> None:
    answer = https.get(LOGIN, headers={"X-Forwarded-Proto": "https"})
    assert answer.status_code == 200
    assert answer["Strict-Transport-Security"] == "max-age=3600"
    assert answer.cookies["csrftoken"]["secure"]
    User.objects.create_superuser("ada", password="right")
    logged_in = https.post(
        LOGIN, {"username": "ada", "password": "right"}, headers={"X-Forwarded-Proto": "https"}
    )
    cookie = logged_in.cookies["sessionid"]
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Lax")


# --- the content policy ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/admin/login/", "/api/v1/jobs", "/healthz", "/nowhere", "/static/executions/icon.svg"]
)
def test_every_answer_says_where_content_may_come_from(client: Client, path: str) -> None:
    answer = client.get(path)
    policy = policy_of(answer)
    answer.close()
    assert policy["default-src"] == ["'self'"]
    assert policy["object-src"] == policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
    assert set(policy["script-src"]) <= {"'self'", "'unsafe-eval'"}


def test_texts_are_compiled_on_the_pages_of_the_admin_alone(client: Client) -> None:
    assert policy_of(client.get(LOGIN))["script-src"] == ["'self'", "'unsafe-eval'"]
    assert policy_of(client.get("/api/v1/jobs"))["script-src"] == ["'self'"]


# --- pages of other origins -----------------------------------------------------------------


def preflight(origin: str) -> object:
    return Client().options(
        "/api/v1/jobs",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,idempotency-key",
        },
    )


def test_pages_of_other_origins_may_call_nothing(client: Client, settings: Settings) -> None:
    assert CORS not in settings.MIDDLEWARE
    answer = preflight("https://evil.example.org")
    assert not any(name.startswith("Access-Control") for name in answer.headers)  # type: ignore[attr-defined]


def test_an_origin_that_is_set_may_call_rest_without_cookies_and_no_other_may(settings: Settings) -> None:
    settings.MIDDLEWARE = [CORS, *settings.MIDDLEWARE]
    settings.CORS_ALLOWED_ORIGINS = ["https://tools.example.org"]
    headers = preflight("https://tools.example.org").headers  # type: ignore[attr-defined]
    assert headers["Access-Control-Allow-Origin"] == "https://tools.example.org"
    assert "idempotency-key" in headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in headers
    other = preflight("https://evil.example.org").headers  # type: ignore[attr-defined]
    assert "Access-Control-Allow-Origin" not in other
    page = Client().get(LOGIN, headers={"Origin": "https://tools.example.org"})
    assert "Access-Control-Allow-Origin" not in page.headers


# --- logins ---------------------------------------------------------------------------------


@pytest.fixture
def ada(settings: Settings) -> User:
    settings.AXES_FAILURE_LIMIT = 3
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_superuser("ada", password="right")


def log_in(password: str, name: str = "ada", *, forwarded: str = "", address: str = "127.0.0.1") -> int:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    form = {"username": name, "password": password}
    return Client().post(LOGIN, form, headers=headers, REMOTE_ADDR=address).status_code


def test_after_too_many_failures_the_right_password_is_refused_too(ada: User) -> None:
    assert [log_in("wrong") for _ in range(2)] == [200, 200]
    assert log_in("wrong") == 429
    answer = Client().post(LOGIN, {"username": "ada", "password": "right"})
    assert answer.status_code == 429
    assert answer["Retry-After"] == "900"
    assert "sessionid" not in answer.cookies
    assert b"15m" in answer.content


def test_the_lock_is_of_a_name_at_an_address(ada: User, settings: Settings) -> None:
    User.objects.create_superuser("bob", password="right")
    assert [log_in("wrong") for _ in range(3)][-1] == 429
    assert log_in("right", "bob") == 302
    assert log_in("right", address="192.0.2.7") == 302
    assert log_in("right", forwarded="192.0.2.7") == 429, "nobody vouches for that address"
    settings.PUNCTUAL_PROXIES = 1
    assert log_in("right", forwarded="192.0.2.7") == 302


def test_a_lock_ends_and_a_login_forgets_the_failures(ada: User, settings: Settings) -> None:
    assert [log_in("wrong") for _ in range(3)][-1] == 429
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - settings.PUNCTUAL_LOGIN_LOCKOUT)
    assert log_in("right") == 302
    assert not AccessAttempt.objects.exists()
    assert [log_in("wrong") for _ in range(2)] == [200, 200]
    assert log_in("right") == 302


def test_trying_on_makes_a_lock_no_longer(ada: User, settings: Settings) -> None:
    assert [log_in("wrong") for _ in range(3)][-1] == 429
    almost = settings.PUNCTUAL_LOGIN_LOCKOUT - timedelta(minutes=1)
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - almost)
    assert log_in("wrong") == 429
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=1))
    assert log_in("right") == 302


def test_many_names_from_one_address_are_slowed_down(ada: User, settings: Settings, store: Store) -> None:
    settings.PUNCTUAL_LOGIN_RATE = 3
    assert [log_in("wrong", f"name{number}") for number in range(5)] == [200, 200, 200, 429, 429]
    answer = Client().post(LOGIN, {"username": "ada", "password": "right"})
    assert answer.status_code == 429
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert Client().get(LOGIN).status_code == 200
    assert log_in("right", address="192.0.2.7") == 302


def test_no_password_is_kept_of_a_failed_login(ada: User) -> None:
    log_in("my-secret-word")
    kept = AccessAttempt.objects.values().get()
    assert "my-secret-word" not in str(kept)


# --- bodies ---------------------------------------------------------------------------------


def test_a_body_beyond_the_limit_is_refused_before_it_is_taken_in() -> None:
    with (
        web_server(0) as address,
        closing(HTTPConnection(urlsplit(address).netloc, timeout=10)) as connection,
    ):
        connection.putrequest("POST", "/api/v1/jobs")
        connection.putheader("Content-Length", str(MAX_BODY_BYTES + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
