"""No value of a body is shown, whatever became of the body; and which run it was about still is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.masking import HIDDEN
from executions.bus.dead_letters import Letter
from executions.entries import Entry, Popped
from executions.events import Event, decode, encode, encode_queued
from executions.letter_texts import MOST_EVENTS, READ_BYTES, body_text, header_texts, reason_text
from executions.runspecs import Spec
from executions.states import EventType
from executions.worker.assignments import message_body, read_arguments
from scheduler_project.kernel.errors import InvalidValue

RUN = "01990000-0000-7000-8000-00000000abcd"
JOB = "01880000-0000-7000-8000-00000000dcba"
NOW = datetime(2026, 11, 30, 6, 27, tzinfo=UTC)
SPEC = Spec(
    job_id=JOB, job_name="nightly", owner="sales", owner_id=7, type="Script", command="echo", schedule={}
)
STARTED = Event(type=EventType.STARTED, execution_id=UUID(RUN), attempt=2, at=NOW, worker="w-1@host")
OF_SECRETS_ALONE = "XYZé☃"
SECRETS = st.text("XYZé☃\"\\{}[]:,' =\n", min_size=1, max_size=30).filter(
    lambda text: bool(set(text) & set(OF_SECRETS_ALONE))
)
SHAPES: list[Callable[[str], Any]] = [
    lambda secret: {"A": secret, "B": "1"},
    lambda secret: {"job_id": secret, "execution": secret, "attempt": secret},
    lambda secret: f"FOO=bar BAZ={secret}",
    lambda secret: [["DB", secret]],
    lambda secret: [{"name": "A", "value": secret, "other": secret}],
    lambda secret: {"A": {"B": [secret]}},
]
PLACES = ("env", "variables", "parameters", "environment", "password", "command", "anything")
QUOTED_BY_ERRORS = ("type", "exit_code", "at", "attempt", "execution")
CHANGES = ("tail", "head", "insert", "change", "long", "envelope")


def run_body(given: dict[str, Any] | None = None) -> bytes:
    """As a beat writes it; ``given``: what its spec has besides."""
    entry = Entry(execution_id=UUID(RUN), spec_id=SPEC.id, attempt=1, due=NOW)
    spec = {**SPEC.to_json(), **(given or {})}
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return message_body(Popped(entry.member), text.encode(), NOW)


def events_body(given: dict[str, Any]) -> bytes:
    return json.dumps({"events": [{**STARTED.to_json(), **given}]}, separators=(",", ":")).encode()


def reason_of(body: bytes) -> list[str]:
    """What is said of it by those who cannot read it."""
    reasons = []
    for read in (decode, lambda body: read_arguments(json.loads(body)[1])):
        try:
            read(body)
        except InvalidValue as error:
            reasons.append(error.message)
        except Exception as error:  # as a worker's consumer says it
            reasons.append(f"{type(error).__name__}: {error}")
    return reasons


def shown_of(body: bytes) -> str:
    texts = [reason_text(Letter(body, {"reason": reason})) for reason in reason_of(body)]
    return " ".join([body_text(Letter(body)), *texts])


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """One of ours with a secret in it."""
    value = draw(st.sampled_from(SHAPES))(draw(SECRETS))
    given = {draw(st.sampled_from(PLACES + QUOTED_BY_ERRORS)): value}
    made: bytes = draw(st.sampled_from((run_body, events_body)))(given)
    return made


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Cut at any place, lengthened, put into an envelope, with bytes changed, or several of these."""
    body: bytes = draw(bodies())
    pieces = st.text('{}[]":,\\ eE0\n', max_size=6).map(str.encode)
    for change in draw(
        st.lists(st.sampled_from(["tail", "head", "insert", "change", "long", "envelope"]), max_size=4)
    ):
        at = draw(st.integers(0, len(body)))
        piece = draw(pieces)
        if change == "tail":
            body = body[:at]
        elif change == "head":
            body = body[at:]
        elif change == "insert":
            body = body[:at] + piece + body[at:]
        elif change == "change":
            body = body[:at] + piece + body[at + len(piece) :]
        elif change == "long":
            body += (b" " if at % 2 else b"0") * READ_BYTES
        else:
            body = json.dumps({"body": body.decode(errors="replace"), "headers": {}}).encode()
    return body


@given(changed())
def test_of_a_value_no_character_is_shown(body: bytes) -> None:
    shown = shown_of(body)
    assert not set(shown) & set(OF_SECRETS_ALONE), shown
    assert len(body_text(Letter(body))) < 8_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_that_is_cut_at_any_place_shows_nothing(shape: Callable[[str], Any]) -> None:
    body = run_body({"env": shape("XYZ-XYZ")})
    for at in range(len(body)):
        assert not set(shown_of(body[:at])) & set(OF_SECRETS_ALONE), at


@pytest.mark.parametrize(
    "body",
    [
        b'{"env": {"X": "broken-json-secret", "Y": 1',
        b'{"env": "FOO=bar BAZ=secret3"}',
        b'{"env": [["DB","secretdb"]]}',
        b'{"variables": {"A": "secret"}}',
        b'"secret"',
        b"secret",
        b'{"secret": 1}',
        json.dumps({"body": base64.b64encode(b'{"env": {"A": "x"}}').decode(), "headers": {}}).encode()[:-5],
        b"\xff\xfe" + "secret".encode("utf-16-le"),
    ],
)
def test_of_what_is_no_message_of_ours_nothing_is_shown(body: bytes) -> None:
    shown = json.loads(body_text(Letter(body)))
    assert shown["bytes"] == len(body)
    assert set(shown) == {"bytes", "unreadable"}
    assert "secret" not in str(shown)


def test_a_run_is_known_by_its_ids() -> None:
    body = run_body({"env": {"A": "x"}})
    assert json.loads(body_text(Letter(body)))["run"] == {
        "execution": RUN,
        "attempt": 1,
        "generation": 0,
        "flags": 0,
        "queued": 1_796_020_020_000_000,
        "job_id": JOB,
        "owner_id": 7,
    }


def test_a_run_that_was_cut_off_is_known_too() -> None:
    body = run_body({"env": {"A": "x" * 200}})
    cut = json.loads(body_text(Letter(body[:150])))
    assert cut["run"] == {"execution": RUN, "attempt": 1, "generation": 0}
    assert cut["unreadable"].startswith("it is no JSON")
    long = json.loads(body_text(Letter(run_body({"env": {"A": "x" * READ_BYTES}}))))
    assert long["run"]["execution"] == RUN
    assert "longer than" in long["unreadable"]
    in_the_number = body[: body.index(b'"attempt":') + 11]
    assert json.loads(body_text(Letter(in_the_number)))["run"] == {"execution": RUN}, "1 may have been 12"


def test_events_are_known_by_their_runs_and_types_without_messages() -> None:
    failed = replace(STARTED, type=EventType.FAILED, exit_code=3, reason="error", message="psql -W pw")
    body = encode([STARTED, failed])
    first, second = json.loads(body_text(Letter(body)))["events"]
    assert first == {**STARTED.to_json(), "at": NOW.isoformat()}
    assert second == {name: value for name, value in failed.to_json().items() if name != "message"}
    assert json.loads(body_text(Letter(body[:-3])))["events"] == [
        {"type": "JOB_STARTED", "execution": RUN, "attempt": 2},
        {"type": "JOB_FAILED", "execution": RUN, "attempt": 2},
    ]


def test_of_many_the_first_are_shown_and_how_many_there_are() -> None:
    shown = body_text(Letter(encode([STARTED] * 100)))
    assert len(json.loads(shown)["events"]) == MOST_EVENTS
    assert json.loads(shown)["number"] == 100
    (queued,) = json.loads(body_text(Letter(encode_queued([(RUN, 1, 0)] * 50, NOW))))["events"]
    assert queued["number_of_runs"] == 50
    assert queued["runs"][0] == [RUN, 1, 0]
    largest = {
        "worker": "w" * 100,
        "reason": "r" * 100,
        "runs": [[RUN, 1, 0]] * 50,
        "due_at": NOW.isoformat(),
    }
    many = json.dumps({"events": [{**STARTED.to_json(), **largest}] * 90}).encode()
    assert len(body_text(Letter(many))) < 8_000


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("not a run: KeyError: 'spec'", "not a run: KeyError: 'spec'"),
        ("there is no task 'no.such.task'", "there is no task 'no.such.task'"),
        ("there is no task 'a hunter2'", f"there is no task {HIDDEN}"),
        ("not a run: KeyError: 'hunter2'", f"not a run: KeyError: {HIDDEN}"),
        ("ValueError: 'JOB_NEW' is not a valid EventType", "ValueError: 'JOB_NEW' is not a valid EventType"),
        ("ValueError: 'it's' is not a valid EventType", f"ValueError: {HIDDEN} is not a valid EventType"),
        ("exit code 'hunter2' is not a whole number", f"exit code {HIDDEN} is not a whole number"),
        ("exit code {'a': 'hunter2… (500 characters)", f"exit code {{{HIDDEN}"),
        ("attempt b'hunter2'", f"attempt {HIDDEN}"),
        (
            "JSONDecodeError: Expecting ',' delimiter: line 1",
            "JSONDecodeError: Expecting ',' delimiter: line 1",
        ),
        ("'utf-8' codec can't decode byte 0xff", "'utf-8' codec can't decode byte 0xff"),
        (
            'IntegrityError: new row for relation "executions_execution" violates check constraint "valid"\n'
            "DETAIL:  Failing row contains (1, hunter2).",
            'IntegrityError: new row for relation "executions_execution" violates check constraint "valid" …',
        ),
        (
            'DataError: invalid input syntax for type json: "hunter2"',
            f"DataError: invalid input syntax for type json: {HIDDEN}",
        ),
        ("postgres://etl:hunter2@db is away", f"postgres://etl:{HIDDEN}@db is away"),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_a_reason_is_shown_without_what_it_quotes(reason: str, shown: str) -> None:
    assert reason_text(Letter(b"", {"reason": reason})) == shown


def test_of_headers_celerys_own_are_shown_where_they_are_words() -> None:
    headers = {
        "id": f"{RUN}:1",
        "task": "executions.run",
        "retries": 0,
        "timelimit": [None, None],
        "origin": "a text of hunter2",
        "root_id": {"A": "hunter2"},
        "group": ["hunter2"],
        "argsrepr": "('hunter2',)",
        "kwargsrepr": "{'env': {'A': 'hunter2'}}",
        "env": {"A": "hunter2"},
        "x" * 300: 1,
        "reason": "of the letter",
    }
    shown = header_texts(Letter(b"", headers))
    assert shown["id"] == f"{RUN}:1"
    assert (shown["task"], shown["retries"], shown["timelimit"]) == ("executions.run", "0", "[null, null]")
    hidden = {name for name, value in shown.items() if value == HIDDEN}
    assert {"origin", "root_id", "group", "argsrepr", "kwargsrepr", "env"} < hidden
    assert "reason" not in shown
    assert max(map(len, shown)) <= 100
