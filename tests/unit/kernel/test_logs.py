from __future__ import annotations

import logging

import pytest

from scheduler_project.logs import EventFormatter, RefusalsInShort


def line(message: str, **fields: object) -> str:
    record = logging.LogRecord("beat.dispatcher", logging.INFO, "", 0, message, (), None)
    record.created = 1796004000.1234
    record.__dict__.update(fields)
    return EventFormatter().format(record)


def test_a_line_is_time_level_logger_event_and_fields() -> None:
    assert line("runs_sent", runs=12, shard=3) == (
        "2026-11-30T02:00:00.123Z INFO beat.dispatcher runs_sent runs=12 shard=3"
    )


def test_a_value_with_blanks_quotes_or_nothing_in_it_is_quoted_on_one_line() -> None:
    assert line("x", error='a "b"\nc', empty="").endswith(r'x error="a \"b\"\nc" empty=""')


def test_no_terminal_obeys_a_value() -> None:
    shown = line("x", job="\x1b[2J", owner="a\u202eb", note="c\x9bd")
    assert shown.endswith(r'x job="\u001b[2J" owner="a\u202eb" note="c\u009bd"')


def test_a_traceback_follows_its_line() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        text = line("failed", exc_info=(ValueError, error, error.__traceback__))
    assert text.splitlines()[0].endswith(" failed")
    assert text.splitlines()[-1] == "ValueError: why"


def failed(name: str, status: int) -> logging.LogRecord:
    record = logging.LogRecord(
        name, logging.WARNING, __file__, 1, "Forbidden", (), (ValueError, ValueError("x"), None)
    )
    record.status_code = status
    return record


@pytest.mark.parametrize(
    ("name", "status", "traceback"),
    [
        ("django.request", 403, False),
        ("django.security.SuspiciousOperation", 400, False),
        ("django.request", 500, True),
        ("jobs.planner", 403, True),
    ],
)
def test_what_a_client_did_wrong_is_one_line(name: str, status: int, traceback: bool) -> None:
    record = failed(name, status)
    assert RefusalsInShort().filter(record)
    assert ("ValueError" in EventFormatter().format(record)) is traceback
