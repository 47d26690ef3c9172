"""Every way to start Punctual ends with one line where it cannot go on; Celery commands work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from executions.bus.topology import MAINTENANCE
from tests.services import database

ROOT = Path(__file__).resolve().parents[2]
CELERY = ("-m", "celery", "-A", "scheduler_project")
ENTRY_POINTS: dict[str, Sequence[str]] = {
    "check": ("manage.py", "check"),
    "migrate": ("manage.py", "migrate"),
    "record_events": ("manage.py", "record_events"),
    "runserver": ("manage.py", "runserver"),
    "standalone": ("manage.py", "standalone"),
    "demo": ("manage.py", "standalone", "--demo"),
    "beat": (*CELERY, "beat"),
    "worker": (*CELERY, "worker"),
    "call": (*CELERY, "call", "maintenance.partitions"),
    "report": (*CELERY, "report"),
    "wsgi": ("-m", "waitress", "scheduler_project.wsgi:application"),
    "asgi": ("-c", "import scheduler_project.asgi"),
}


def start(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
def test_nonsense_in_a_variable_ends_every_entry_point_with_one_line(words: Sequence[str]) -> None:
    done = start(*words, PUNCTUAL_SHARDS="0")
    assert done.returncode == 1
    assert done.stdout + done.stderr == (
        "PUNCTUAL_SHARDS: '0' is not allowed. Allowed: a whole number from 1 to 4096.\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("apply_jobs", "examples/jobs.yaml", "--owner", "ops"),
        ("import_crontab", "/dev/null", "--owner", "ops"),
        ("createsuperuser", "--no-input", "--username", "ops", "--email", "ops@example.com"),
        ("showmigrations",),
    ],
    ids=lambda words: words[0],
)
def test_a_command_whose_database_does_not_answer_says_which_address(words: Sequence[str]) -> None:
    nowhere = "postgresql://nobody:secret@127.0.0.1:1/nowhere"
    done = start("manage.py", *words, DATABASE_URL=nowhere, DJANGO_SUPERUSER_PASSWORD="x" * 20)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("DATABASE_URL: the database does not answer.")
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("apply_jobs", "examples/jobs.yaml", "--owner", "ops"),
        ("createsuperuser", "--no-input", "--username", "ops", "--email", "ops@example.com"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_on_an_unmigrated_database_says_how_to_migrate_it(words: Sequence[str]) -> None:
    with database() as url:
        done = start("manage.py", *words, DATABASE_URL=url, DJANGO_SUPERUSER_PASSWORD="x" * 20)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("DATABASE_URL: the database is not as this version needs it.")
    assert "Run 'manage.py migrate'." in done.stderr


@pytest.mark.parametrize("words", [("apply_jobs",), ("import_crontab", "--owner", "ops")])
def test_what_a_refusal_repeats_does_not_command_the_terminal(words: Sequence[str]) -> None:
    done = start("manage.py", *words, "none\x1b[31m\u202e")
    assert done.stderr == "CommandError: none\\x1b[31m\\u202e: No such file or directory.\n"


@pytest.mark.parametrize("name", ["REDIS_URL", "BROKER_URL"])
def test_a_worker_without_an_address_says_which(name: str, tmp_path: Path) -> None:
    done = start(*ENTRY_POINTS["worker"], **{name: "", "PUNCTUAL_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"Set {name}, " in done.stderr


@pytest.mark.parametrize("entry", ["beat", "record_events"])
def test_a_beat_and_a_recorder_without_a_database_say_so(entry: str, tmp_path: Path) -> None:
    done = start(*ENTRY_POINTS[entry], DATABASE_URL="", PUNCTUAL_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "Set DATABASE_URL, " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("entry", ["worker", "standalone"])
def test_a_place_that_runs_cannot_use_is_refused_where_they_run(entry: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    done = start(*ENTRY_POINTS[entry], PUNCTUAL_RUNTIME="process", PUNCTUAL_PROCESS_WORKDIR=missing)
    assert done.returncode == 1
    assert done.stderr == (
        f"PUNCTUAL_PROCESS_WORKDIR: there is no {missing!r}. Allowed: a folder that exists.\n"
    )


@pytest.mark.parametrize("entry", ["worker", "standalone"])
def test_logs_that_cannot_be_written_are_refused_where_they_are(entry: str) -> None:
    done = start(*ENTRY_POINTS[entry], PUNCTUAL_LOG_DIR="/proc/logs")  # where not even root may make a folder
    assert done.returncode == 1
    assert done.stderr == "PUNCTUAL_LOG_DIR: '/proc/logs' cannot be written. Allowed: a folder that can.\n"


def test_secrets_that_a_worker_cannot_read_are_refused_before_a_run_misses_them(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    done = start(*ENTRY_POINTS["worker"], PUNCTUAL_SECRETS_DIR=missing)
    assert done.returncode == 1
    assert done.stderr == f"PUNCTUAL_SECRETS_DIR: {missing!r} cannot be read. Allowed: a folder that can.\n"


def test_the_web_server_needs_no_place_of_the_worker() -> None:
    wanted = {"PUNCTUAL_LOG_DIR": "/proc/logs", "PUNCTUAL_PROCESS_WORKDIR": "/missing"}
    assert start(*ENTRY_POINTS["asgi"], **wanted).returncode == 0


# --- Celery's commands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report",), "software -> celery"),
        (("call", "maintenance.partitions"), "-"),
        (("inspect", "ping", "--timeout", "0.2"), "No nodes replied"),
        (("status", "--timeout", "0.2"), "No nodes replied"),
        (("control", "shutdown", "--timeout", "0.2"), "No nodes replied"),
        (("purge", "--help"), "Usage"),
        (("purge", "-f", "-Q", MAINTENANCE), "message"),
        (("shell", "--help"), "Usage"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_every_kind_of_celery_command_works(words: Sequence[str], said: str) -> None:
    done = start(*CELERY, *words)
    assert "Traceback" not in done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def levels(done: str) -> set[str]:
    return {line.split()[1] for line in done.splitlines() if line[:2] == "20" and len(line.split()) > 1}


@pytest.mark.parametrize(
    ("variable", "words", "expected"),
    [
        ("INFO", (), True),
        ("DEBUG", (), True),
        ("WARNING", (), False),
        ("WARNING", ("-l", "INFO"), True),
        ("DEBUG", ("-l", "ERROR"), False),
    ],
)
def test_the_variable_sets_celerys_level_unless_it_is_given(
    variable: str, words: Sequence[str], expected: bool, tmp_path: Path
) -> None:
    """Told by a beat's first line, which it says before it looks for its database."""
    home = {"DATABASE_URL": "", "PUNCTUAL_HOME": str(tmp_path), "PUNCTUAL_LOG_LEVEL": variable}
    done = start(*CELERY, "beat", *words, **home)
    assert ("INFO" in levels(done.stderr)) is expected


@pytest.mark.parametrize(
    ("loads", "there"),
    [("scheduler_project.celery", False), ("scheduler_project.celery, scheduler_project.urls", True)],
)
def test_only_who_serves_pages_loads_the_admins(loads: str, there: bool) -> None:
    """They are a tenth of what the start of a beat or a worker would cost."""
    done = start("-c", f"import {loads}, sys; print('jobs.admin' in sys.modules)")
    assert (done.stdout.strip(), done.returncode) == (str(there), 0)
