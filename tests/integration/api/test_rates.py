"""How often one may ask: 429 with Retry-After, each on an account of his own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings
from rest_framework.test import APIClient

from executions.rates import PAUSE_S, Rates, default_rates
from executions.store import Store
from tests.integration.api.conftest import ClientOf, problem_of

JOBS = "/api/v1/jobs"
NOBODY = "redis://127.0.0.1:1"


pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def no_redis(settings: Settings) -> Iterator[None]:
    settings.REDIS_URL = NOBODY
    default_rates.cache_clear()
    yield
    default_rates.cache_clear()


def test_who_asks_too_often_is_told_when_to_go_on(settings: Settings, member: APIClient) -> None:
    settings.PUNCTUAL_API_RATE = 3
    assert [member.get(JOBS).status_code for _ in range(3)] == [200, 200, 200]
    answer = member.get(JOBS)
    problem = problem_of(answer, 429)
    assert 55 <= int(answer["Retry-After"]) <= 60
    assert problem["title"] == "Too Many Requests"
    assert f"{answer['Retry-After']} s" in problem["detail"]


def test_each_has_an_account_of_his_own(settings: Settings, member: APIClient, outsider: APIClient) -> None:
    settings.PUNCTUAL_API_RATE = 1
    assert [client.get(JOBS).status_code for client in (member, outsider, member, outsider)] == [
        200,
        200,
        429,
        429,
    ]


def test_a_session_is_counted_for_its_user(settings: Settings, client_of: ClientOf) -> None:
    settings.PUNCTUAL_API_RATE = 2
    by_token = client_of("mia", "data-engineering")
    browsers = [APIClient(), APIClient()]
    for browser in browsers:
        browser.force_login(User.objects.get(username="mia"))
    assert [browser.get(JOBS).status_code for browser in browsers] == [200, 200]
    assert browsers[0].get(JOBS).status_code == 429
    assert by_token.get(JOBS).status_code == 200


def test_who_is_nobody_is_counted_by_his_address(
    settings: Settings, anonymous: APIClient, member: APIClient
) -> None:
    settings.PUNCTUAL_API_RATE_ANONYMOUS = 2
    wrong = {"Authorization": "Token nonsense"}
    assert anonymous.get(JOBS).status_code == 401
    assert anonymous.get(JOBS, headers=wrong).status_code == 401
    assert problem_of(anonymous.get(JOBS, headers=wrong), 429)
    assert anonymous.get(JOBS, REMOTE_ADDR="192.0.2.7").status_code == 401
    assert member.get(JOBS).status_code == 200, "he is somebody, wherever he is"


def test_a_header_that_anybody_can_write_makes_nobody_another(
    settings: Settings, anonymous: APIClient
) -> None:
    settings.PUNCTUAL_API_RATE_ANONYMOUS = 1
    for number, status in enumerate((401, 429, 429)):
        assert anonymous.get(JOBS, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}").status_code == status


def test_behind_a_proxy_each_client_has_his_own_address(settings: Settings, anonymous: APIClient) -> None:
    settings.PUNCTUAL_API_RATE_ANONYMOUS, settings.PUNCTUAL_PROXIES = 1, 1
    forwarded = ["192.0.2.1", "192.0.2.2", "10.9.9.9, 192.0.2.1", "192.0.2.2:4711"]
    answers = [anonymous.get(JOBS, HTTP_X_FORWARDED_FOR=text).status_code for text in forwarded]
    assert answers == [401, 401, 429, 429]


def test_nothing_of_the_database_is_asked_for_who_is_nobody(
    settings: Settings, anonymous: APIClient, django_assert_num_queries: object
) -> None:
    settings.PUNCTUAL_API_RATE_ANONYMOUS = 1
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert [anonymous.get(JOBS).status_code for _ in range(2)] == [401, 429]


def test_where_redis_is_away_everybody_passes(settings: Settings, member: APIClient, no_redis: None) -> None:
    settings.PUNCTUAL_API_RATE = 1
    assert [member.get(JOBS).status_code for _ in range(3)] == [200, 200, 200]


def test_redis_that_is_away_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    now = 1000.0
    monkeypatch.setattr("executions.rates.monotonic", lambda: now)
    rates = Rates(Store(NOBODY, "nobody", timeout_s=0.1))
    assert [rates.wait_s("mia", 1) for _ in range(3)] == [None, None, None]
    assert len(caplog.records) == 1
    now += PAUSE_S
    assert rates.wait_s("mia", 1) is None
    assert len(caplog.records) == 2


def test_a_minute_begins_with_the_first_request_and_ends(store: Store) -> None:
    rates = Rates(store)
    assert [rates.wait_s("mia", 2) for _ in range(2)] == [None, None]
    left = rates.wait_s("mia", 2)
    assert left is not None
    assert 55 < left <= 60
    key = store.tagged_key("mia", "rate")
    store.batch(lambda pipe: pipe.pexpire(key, 0))
    assert rates.wait_s("mia", 2) is None
