"""Processes that a killed supervisor left: found by their record, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from scheduler_project.standalone.leftovers import RECORD, Record, birth, end_leftovers, folder_of, wait_gone


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_what_is_on_record_and_lives_is_left(tmp_path, sleeper):
    record = Record(tmp_path)
    record.add("beat", sleeper.pid, signal.SIGKILL)
    record.add("gone", _ended(), signal.SIGKILL)
    left = Record(tmp_path).left()
    assert [(process.name, process.pid) for process in left] == [("beat", sleeper.pid)]
    assert (tmp_path / RECORD).stat().st_mode & 0o777 == 0o600
    record.drop("beat")
    assert Record(tmp_path).left() == []


def test_a_process_that_has_the_id_of_another_is_not_touched(tmp_path, sleeper):
    Record(tmp_path).add("beat", sleeper.pid, signal.SIGKILL)
    items = json.loads((tmp_path / RECORD).read_text())
    (tmp_path / RECORD).write_text(json.dumps([{**items[0], "born": "1"}]))
    assert Record(tmp_path).left() == []


def test_left_processes_are_ended_by_their_signal_and_each_is_named(tmp_path):
    # Not a shell's trap: a signal just before the shell blocks in `wait` waits for the child's end.
    script = (
        "import pathlib, signal, sys, time\n"
        f"home = pathlib.Path({str(tmp_path)!r})\n"
        "signal.signal(signal.SIGINT, lambda *_: ((home / 'saved').touch(), sys.exit(0)))\n"
        "(home / 'up').touch()\n"
        "while True: time.sleep(0.05)\n"
    )
    server = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    while not (tmp_path / "up").exists():
        assert server.poll() is None
    record = Record(tmp_path)
    record.add("postgresql", server.pid, signal.SIGINT)
    said: list[str] = []
    end_leftovers(Record(tmp_path).left(), said.append)
    assert server.wait(5) == 0
    assert (tmp_path / "saved").exists()
    assert said == [f"ending postgresql (process {server.pid}), left by a start that was killed"]


def test_nothing_on_record_is_nothing_left(tmp_path):
    assert Record(tmp_path).left() == []


def test_birth_tells_processes_apart(sleeper):
    assert birth(sleeper.pid) == birth(sleeper.pid)
    assert birth(_ended()) is None
    assert folder_of(os.getpid()) is not None
    assert folder_of(_ended()) is None
    assert wait_gone([], 1.0)


def _ended() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid
