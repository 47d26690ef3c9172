"""Logs of child processes: loud lines, last lines, size."""

from __future__ import annotations

import pytest

from scheduler_project.standalone import log_files
from scheduler_project.standalone.log_files import LogFile, LogFiles


@pytest.fixture
def log(tmp_path):
    return tmp_path / "beat.log"


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def test_only_new_warnings_and_errors_are_loud(log):
    append(log, "2026-11-30T02:00:00.123Z ERROR beat old\n")
    file = LogFile(log)
    append(
        log,
        "2026-11-30T02:00:00.123Z INFO beat.loader loaded count=3\n"
        "2026-11-30T02:00:00.124Z WARNING beat.loader service_retry delay_s=0.1\n"
        "[2026-11-30 02:00:01,000: ERROR/MainProcess] consumer: Cannot connect\n"
        "2026-11-30T02:00:00.125Z WARNING django.request Not Found: /favicon.ico\n"
        "Traceback (most recent call last):\n"
        "an ERROR in the middle of a text\n",
    )
    assert file.loud_lines() == [
        "2026-11-30T02:00:00.124Z WARNING beat.loader service_retry delay_s=0.1",
        "[2026-11-30 02:00:01,000: ERROR/MainProcess] consumer: Cannot connect",
    ]
    assert file.loud_lines() == []


def test_a_line_counts_when_it_is_complete(log):
    file = LogFile(log)
    append(log, "2026-11-30T02:00:00.123Z ERR")
    assert file.loud_lines() == []
    append(log, "OR beat x\n")
    assert file.loud_lines() == ["2026-11-30T02:00:00.123Z ERROR beat x"]


def test_a_large_log_is_put_aside_at_the_start_and_while_it_grows(log, monkeypatch):
    monkeypatch.setattr(log_files, "KEPT_AT_START_BYTES", 10)
    monkeypatch.setattr(log_files, "LIMIT_BYTES", 100)
    append(log, "of the last start\n")
    file = LogFile(log)
    assert log.read_text() == ""
    assert log.with_name("beat.log.1").read_text() == "of the last start\n"
    append(log, "x" * 120 + "\n")
    file.loud_lines()
    assert log.stat().st_size == 0
    append(log, "2026-11-30T02:00:00.123Z ERROR beat x\n")
    assert file.loud_lines() == ["2026-11-30T02:00:00.123Z ERROR beat x"]


def test_loud_lines_are_repeated_with_the_name_and_the_last_line_can_be_asked(tmp_path):
    said = []
    files = LogFiles(tmp_path / "log", lambda name, line: said.append((name, line)))
    path = files.folder / "web.log"
    files.follow(path, "web")
    append(path, "2026-11-30T02:00:00.123Z CRITICAL web gone\nCommandError: no\n\n")
    files.repeat_loud_lines()
    assert said == [("web", "2026-11-30T02:00:00.123Z CRITICAL web gone")]
    assert files.last_line(path) == "CommandError: no"
    assert files.last_line(files.folder / "none.log") == ""
