"""Logs over REST as they grow: server-sent events from a real server, ranges, last lines."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient
from pytest_django import Settings
from rest_framework.test import APIClient

from access.models import ApiToken
from executions.api.log_stream import _Stream
from executions.log_archive import log_archive
from executions.log_places import live_logs, log_store
from executions.states import EventType
from executions.store import Store
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.integration.api.conftest import ClientOf, create, problem_of
from tests.integration.api.test_executions import happen
from tests.web import web_server

FOLLOWERS = 10


@pytest.fixture(autouse=True)
def logs(settings: Settings, tmp_path: Path) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path


def events_in(lines: Any) -> Iterator[dict[str, str]]:
    """The events of a stream, each as its fields; ``comment`` for what is none."""
    event: dict[str, str] = {}
    for raw in lines:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            event[name or "comment"] = value
        elif event:
            yield event
            event = {}


def told(content: bytes) -> list[dict[str, Any]]:
    """What an ended stream told, without its beginning."""
    return [
        {"event": event.get("event", "output"), **json.loads(event["data"])}
        for event in events_in(content.splitlines(keepends=True))
        if "data" in event
    ]


def begun(client: APIClient, **fields: Any) -> str:
    identity: str = create(client, schedule="now", **fields)["firstExecutionId"]
    happen(identity, EventType.STARTED, worker="w1")
    return identity


def ended(client: APIClient, output: bytes) -> str:
    """A run that has ended, with its log in the folder."""
    identity = begun(client)
    writer = log_store().writer(UUID(identity), 1)
    writer.note("pulling busybox")
    writer.write(output)
    writer.finish()
    happen(identity, EventType.COMPLETED, worker="w1", exit_code=0)
    return identity


def follow(client: APIClient, identity: str, query: str = "", **headers: str) -> Any:
    return client.get(f"/api/v1/executions/{identity}/logs?follow=true{query}", headers=headers)


class Reader(threading.Thread):
    """A follower over a real connection; ``at``: when what it got came, by its text."""

    def __init__(self, address: str, path: str, authorization: str) -> None:
        super().__init__()
        self.connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
        self.connection.request("GET", path, headers={"Authorization": authorization})
        self.answer: HTTPResponse = self.connection.getresponse()
        self.events: list[dict[str, str]] = []
        self.at: dict[str, float] = {}
        self.came = threading.Condition()

    def run(self) -> None:
        for event in events_in(self.answer):
            with self.came:
                self.events.append(event)
                self.at.setdefault(json.loads(event.get("data", "{}")).get("text", ""), monotonic())
                self.came.notify_all()
        self.connection.close()

    def seen(self, text: str) -> float:
        with self.came:
            assert self.came.wait_for(lambda: text in self.at, timeout=30), self.events
            return self.at[text]


@pytest.mark.django_db(transaction=True)
def test_ten_followers_see_each_line_within_a_second_block_nobody_and_hold_no_connection(
    member: APIClient, settings: Settings
) -> None:
    settings.PUNCTUAL_LOG_FOLLOWERS = 4 * FOLLOWERS  # one user has a quarter
    identity = begun(member, retries=1, retryDelay="1s")
    path, token = f"/api/v1/executions/{identity}", member._credentials["HTTP_AUTHORIZATION"]  # type: ignore[attr-defined]
    writer = log_store().writer(UUID(identity), 1)
    with web_server(FOLLOWERS) as address:
        readers = [Reader(address, f"{path}/logs?follow=true", token) for _ in range(FOLLOWERS)]
        for reader in readers:
            assert reader.answer.status == 200
            assert reader.answer.headers["Content-Type"] == "text/event-stream"
            reader.start()
        writer.write(b"first\n")
        readers[0].seen("first\n")
        written = monotonic()
        writer.write(b"second \x1b[31mred\n")
        assert readers[0].seen("second \x1b[31mred\n") - written < 1.0
        asked = HTTPConnection(urlsplit(address).netloc, timeout=10)
        asked.request("GET", path, headers={"Authorization": token})
        assert json.loads(asked.getresponse().read())["status"] == "Active"
        asked.close()
        assert _others_connections() <= 1
        happen(identity, EventType.FAILED, worker="w1", exit_code=3)
        happen(identity, EventType.STARTED, 2, worker="w2")
        log_store().writer(UUID(identity), 2).write(b"again\n")
        for reader in readers:
            reader.seen("again\n")
        happen(identity, EventType.COMPLETED, 2, worker="w2", exit_code=0)
        for reader in readers:
            reader.join(30)
            said = [(event.get("event", "output"), event["id"]) for event in reader.events if "id" in event]
            assert said[-3:] == [("attempt", "2-0-0"), ("output", "2-0-6"), ("end", "2-0-6-end")]
            assert json.loads(reader.events[-1]["data"])["status"] == "Completed Normally"


def _others_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_follower_goes_on_where_it_was_cut_off(member: APIClient) -> None:
    output = "grün\x1b[0m\r50 %\r".encode() + b"\xff\nlast \xe2\x82"
    identity = ended(member, output)
    all_told = told(follow(member, identity).getvalue())
    kinds = [event["event"] for event in all_told]
    assert (kinds[0], kinds[-1]) == ("note", "end")
    assert "pulling busybox" in all_told[0]["text"]
    text = "".join(event["text"] for event in all_told if event["event"] == "output")
    assert text == output.decode(errors="replace")
    notes = len(all_told[0]["text"].encode())
    rest = told(follow(member, identity, **{"Last-Event-ID": f"1-{notes}-10"}).getvalue())
    assert "".join(event.get("text", "") for event in rest) == output[10:].decode(errors="replace")
    final = follow(member, identity, **{"Last-Event-ID": f"1-{notes}-{len(output)}-end"})
    assert final.status_code == 204
    problem = problem_of(follow(member, identity, **{"Last-Event-ID": "yesterday"}), 400)
    assert "yesterday" in problem["errors"]["Last-Event-ID"][0]


@pytest.mark.django_db
def test_one_begins_with_the_last_lines(member: APIClient) -> None:
    identity = ended(member, b"".join(b"line %d\n" % number for number in range(50_000)))
    found = told(follow(member, identity, "&tail=2").getvalue())
    assert [event.get("text") for event in found[:-1]] == ["line 49998\nline 49999\n"]
    assert found[0]["to"] - found[0]["from"] == 22
    assert [event["event"] for event in told(follow(member, identity, "&tail=0").getvalue())] == ["end"]


@pytest.mark.django_db
def test_what_is_archived_is_told_with_its_gap(member: APIClient, settings: Settings) -> None:
    settings.PUNCTUAL_LOG_LIMIT_BYTES = 8192
    output = b"".join(b"%07d\n" % number for number in range(4096))
    identity = ended(member, output)
    log_archive().keep(UUID(identity), 1, log_store().output(UUID(identity), 1))
    log_store().forget(UUID(identity))
    found = told(follow(member, identity).getvalue())
    (gap,) = (event for event in found if event["event"] == "gap")
    assert gap["from"] == 4096
    for event in found:
        if event["event"] == "output":
            assert output[event["from"] : event["to"]].decode() == event["text"]
    assert found[-2]["to"] == len(output)


@pytest.mark.django_db
def test_what_only_redis_has_is_told(member: APIClient, store: Store) -> None:
    identity = begun(member)
    live = live_logs(store)
    assert live is not None
    live.note((UUID(identity), 1), b"[punctual] pulling\n")
    live.ship((UUID(identity), 1), 0, b"far away\n", [])
    answer = follow(member, identity)
    stream = iter(answer.streaming_content)
    found = told(next(stream) + next(stream))
    answer.close()
    assert [(event["event"], event["text"]) for event in found] == [
        ("note", "[punctual] pulling\n"),
        ("output", "far away\n"),
    ]


@pytest.mark.django_db
def test_no_more_are_followed_than_a_process_may(member: APIClient, settings: Settings) -> None:
    settings.PUNCTUAL_LOG_FOLLOWERS = 1
    identity = begun(member)
    first = follow(member, identity)
    refused = follow(member, identity)
    assert "PUNCTUAL_LOG_FOLLOWERS" in problem_of(refused, 503)["detail"]
    assert refused["Retry-After"] == "5"
    log_store().writer(UUID(identity), 1).finish()
    happen(identity, EventType.COMPLETED, worker="w1", exit_code=0)
    assert told(first.getvalue())[-1]["event"] == "end"
    assert told(follow(member, identity).getvalue())[-1]["event"] == "end"


@pytest.mark.django_db
def test_one_user_takes_a_quarter_of_the_places_and_leaves_the_others_theirs(
    member: APIClient, client_of: ClientOf, settings: Settings
) -> None:
    settings.PUNCTUAL_LOG_FOLLOWERS = 8
    identity = begun(member)
    mate = client_of("max", "data-engineering")
    mine = [follow(member, identity) for _ in range(2)]
    refused = follow(member, identity)
    assert "one user" in problem_of(refused, 503)["detail"]
    assert refused["Retry-After"] == "5"
    theirs = follow(mate, identity)
    log_store().writer(UUID(identity), 1).finish()
    happen(identity, EventType.COMPLETED, worker="w1", exit_code=0)
    for stream in (*mine, theirs, follow(mate, identity)):
        assert told(stream.getvalue())[-1]["event"] == "end"
    assert told(follow(member, identity).getvalue())[-1]["event"] == "end"


@pytest.mark.django_db
@pytest.mark.parametrize("lost", ["active", "team", "token"])
def test_a_stream_ends_when_its_user_may_not_follow_any_more(
    member: APIClient, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(_Stream, "LOOK_AGAIN_S", 0.0)
    stream = follow(member, begun(member))
    pieces = iter(stream.streaming_content)
    assert next(pieces).startswith(b"retry: ")
    mia = User.objects.get(username="mia")
    if lost == "active":
        User.objects.filter(pk=mia.pk).update(is_active=False)
    elif lost == "team":
        mia.groups.clear()
    else:
        ApiToken.objects.filter(user=mia).update(revoked_at=utcnow())
    (last,) = pieces
    assert last.startswith(b"event: refused\n")
    assert {"active": b"not active", "team": b"in the team", "token": b"revoked"}[lost] in last


@pytest.mark.django_db
def test_a_browser_follows_with_its_session_and_other_teams_do_not(
    member: APIClient, outsider: APIClient
) -> None:
    identity = ended(member, b"said\n")
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(username="mia"))
    assert told(follow(browser, identity).getvalue())[-2]["text"] == "said\n"
    problem_of(follow(outsider, identity), 404)
    problem_of(follow(member, identity, "&attempt=2"), 404)
    problem_of(follow(member, identity, "&timestamps=true"), 400)


@pytest.mark.django_db(transaction=True)
def test_it_works_under_asgi(member: APIClient) -> None:
    identity = ended(member, b"said\n")
    token = member._credentials["HTTP_AUTHORIZATION"]  # type: ignore[attr-defined]

    async def read() -> bytes:
        answer: Any = await AsyncClient().get(
            f"/api/v1/executions/{identity}/logs?follow=true", headers={"Authorization": token}
        )
        return b"".join([piece async for piece in answer.streaming_content])

    assert [event.get("text") for event in told(async_to_sync(read)())][1:] == ["said\n", None]


@pytest.mark.django_db
@pytest.mark.parametrize("archived", [False, True])
def test_a_part_of_a_log(member: APIClient, archived: bool) -> None:
    identity = ended(member, b"0123456789\n")
    if archived:
        log_archive().keep(UUID(identity), 1, log_store().output(UUID(identity), 1))
        log_store().forget(UUID(identity))
        (kept,) = Path(log_archive()._storage.location).rglob(f"{identity}/1.log.gz")  # type: ignore[attr-defined]
        assert gzip.decompress(kept.read_bytes()).endswith(b"0123456789\n")
    address = f"/api/v1/executions/{identity}/logs"
    whole = member.get(address)
    assert whole["Accept-Ranges"] == "bytes"
    content = whole.getvalue()
    part = member.get(address, headers={"Range": "bytes=-5"})
    assert (part.status_code, part.getvalue(), part["Content-Length"]) == (206, b"6789\n", "5")
    assert part["Content-Range"] == f"bytes {len(content) - 5}-{len(content) - 1}/{len(content)}"
    assert member.get(address, headers={"Range": "bytes=3-6"}).getvalue() == content[3:7]
    beyond = member.get(address, headers={"Range": f"bytes={len(content)}-"})
    assert "bytes" in problem_of(beyond, 416)["detail"]
    assert beyond["Content-Range"] == f"bytes */{len(content)}"
    assert member.get(address, headers={"Range": "bytes=0-1,3-4"}).status_code == 200
    assert member.get(f"{address}?tail=1").getvalue() == b"0123456789\n"
    assert member.get(f"{address}?tail=1&timestamps=true").getvalue().endswith(b"Z - 0123456789\n")
    assert "tail" in problem_of(member.get(f"{address}?tail=10001"), 400)["errors"]
