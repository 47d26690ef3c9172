"""The admin's page of dead letters, and where it is announced; the same over REST."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from rest_framework.test import APIClient

from access.trail.models import ChangeRecord
from executions import dead_letters
from executions.letter_texts import body_text
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.sharing import Shared
from tests.integration.admin.conftest import Browser
from tests.integration.executions.brokers import purge
from tests.integration.executions.letters import REASON, buried, bury
from tests.tokens import token_of

pytestmark = pytest.mark.django_db
PAGE, REST = "/admin/dead-letters/", "/api/v1/dead-letters"
AWAY = "pyamqp://guest:guest@127.0.0.1:1//"


@pytest.fixture(autouse=True)
def empty_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dead_letters, "_counted", Shared(0.0))
    monkeypatch.setattr(dead_letters, "COUNTED_WITHIN_S", 5.0)
    purge()
    yield
    purge()


@pytest.fixture
def root(browser_of: Browser) -> Client:
    return browser_of("root", is_superuser=True)


@pytest.fixture
def rest(root: Client) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(User.objects.get(username='root'))}")
    return client


def text_of(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content
    return str(answer.content.decode())


def test_the_page_shows_what_they_say_and_obeys_nothing_of_it(root: Client) -> None:
    headers: dict[str, Any] = {"<b>py</b>": "hunter2"}
    reason = f"{REASON} <script>alert(1)</script>"
    bury(b"<script>alert(1)</script> password=hunter2", reason=reason, **headers)
    shown = text_of(root.get(PAGE))
    assert "&lt;script&gt;alert(1)" in shown and "<script>alert" not in shown
    assert "&lt;b&gt;py&lt;/b&gt;" in shown
    assert "hunter2" not in shown
    assert "it is no JSON" in shown
    assert REASON in shown and "punctual.recorder" in shown and "2026-11-30 06:27:02 UTC" in shown
    assert len(buried()) == 1


def test_the_sidebar_counts_them_for_who_may_look(root: Client, browser_of: Browser) -> None:
    assert PAGE in text_of(root.get("/admin/"))
    _wait_for_badge(root, "")
    bury(b"1", b"2")
    _wait_for_badge(root, "2")
    assert f'data-dead-letters="{PAGE}"' in text_of(root.get("/admin/"))
    assert PAGE not in text_of(browser_of("mia", "data-engineering").get("/admin/"))


def _wait_for_badge(browser: Client, count: str) -> None:
    """The broker's counts are kept for a second, and a quorum queue counts with a delay."""
    until = monotonic() + 10
    while (found := _badge(text_of(browser.get("/admin/")))) != count:
        assert monotonic() < until, found
        time.sleep(0.1)


def _badge(page: str) -> str:
    entry = page.partition("Dead letters</span>")[2].partition("</a>")[0]
    return entry.partition(">")[2].partition("<")[0].strip()


def test_chosen_ones_are_replayed_and_who_comes_second_is_told(root: Client) -> None:
    first, second = bury(b"1", b"2")
    told = text_of(root.post(PAGE, {"action": "replay", "chosen": [first.id]}, follow=True))
    assert "1 dead letter was replayed." in told
    assert [letter.id for letter in buried()] == [second.id]
    told = text_of(root.post(PAGE, {"action": "replay", "chosen": [first.id]}, follow=True))
    assert "somebody else has replayed or discarded it" in told
    assert ChangeRecord.objects.get(what="replayed").who == "root"


def test_discarding_asks_first_and_takes_all_that_were_shown(root: Client) -> None:
    letters = bury(b"1", b"2", b"3")
    shown = [letter.id for letter in letters[:2]]
    given = {"action": "discard", "every": "yes", "shown": shown}
    asked = text_of(root.post(PAGE, given))
    assert "Discard 2 dead letters?" in asked
    assert len(buried()) == 3
    told = text_of(root.post(PAGE, {"action": "discard", "chosen": shown, "confirmed": "yes"}, follow=True))
    assert "2 dead letters were discarded." in told
    assert [letter.id for letter in buried()] == [letters[2].id]


@pytest.mark.parametrize("given", [{}, {"action": "replay"}, {"action": "burn", "chosen": ["x"]}])
def test_without_a_choice_nothing_is_done(root: Client, given: dict[str, Any]) -> None:
    bury(b"1")
    assert "Choose some" in text_of(root.post(PAGE, given, follow=True))
    assert len(buried()) == 1


def test_who_may_look_may_not_settle(browser_of: Browser) -> None:
    (letter,) = bury(b"1")
    mia = browser_of("mia")
    text_of(mia.get(PAGE), 403)
    User.objects.get(username="mia").user_permissions.add(Permission.objects.get(codename="view_deadletter"))
    assert "Replay the chosen" not in text_of(mia.get(PAGE))
    text_of(mia.post(PAGE, {"action": "replay", "chosen": [letter.id]}), 403)
    assert len(buried()) == 1


def test_a_broker_that_is_away_is_a_page_that_says_so(root: Client, settings: Any) -> None:
    settings.BROKER_URL = AWAY
    shown = text_of(root.get(PAGE), 503)
    assert "They cannot be looked at now" in shown and "BROKER_URL" in shown
    given = {"action": "replay", "chosen": ["x"]}
    assert "Nothing was done" in text_of(root.post(PAGE, given), 503)
    assert "Overview" in text_of(root.get("/admin/"))


def test_rest_lists_replays_and_discards(rest: APIClient) -> None:
    first, second = bury(b"1", b'{"token": "hunter2"}', lang="py")
    listed = rest.get(REST).json()
    assert listed["more"] is False
    assert listed["results"][0] == {
        "id": first.id,
        "queue": "punctual.recorder",
        "reason": REASON,
        "buriedAt": "2026-11-30T06:27:02Z",
        "body": body_text(first),
        "headers": {"lang": "py"},
    }
    assert "hunter2" not in str(listed)
    answer = rest.post(f"{REST}/replay", {"ids": [first.id, "gone"]}, format="json").json()
    assert [(each["id"], each["outcome"]) for each in answer["results"]] == [
        (first.id, "replayed"),
        ("gone", "not_there"),
    ]
    assert rest.post(f"{REST}/replay", {"ids": [first.id]}, format="json").status_code == 409
    assert rest.post(f"{REST}/discard", {"ids": [second.id]}, format="json").status_code == 200
    assert rest.get(REST).json()["results"] == []


@pytest.mark.parametrize("ids", [[], "x", [1], ["x" * 33], ["x"] * 101])
def test_rest_refuses_what_are_no_ids(rest: APIClient, ids: object) -> None:
    answer = rest.post(f"{REST}/replay", {"ids": ids}, format="json")
    assert answer.status_code == 400
    assert "ids" in answer.json()["errors"]


def test_rest_says_that_the_broker_is_away(rest: APIClient, settings: Any) -> None:
    settings.BROKER_URL = AWAY
    assert rest.get(REST).status_code == 503
    assert rest.post(f"{REST}/discard", {"ids": ["x"]}, format="json").status_code == 503
