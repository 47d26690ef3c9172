"""The Makefile and the scripts behind it, as someone at a shell meets them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import debian, services

ROOT = Path(__file__).parents[2]
OF_THIS_SESSION = {
    *("DATABASE_URL", "REDIS_URL", "BROKER_URL", "DOCKER_HOST"),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHON", "VENV"),
}
VERSION = "{}.{}".format(*sys.version_info)


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it as from a fresh shell: without this session's addresses and without the make around it."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THIS_SESSION}
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


# make


def test_make_alone_lists_every_target_with_a_line() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.*)$", makefile, re.M)[0].split()

    listed = dict(re.findall(r"^  ([a-z-]+)\s{2,}(\S.*)$", run("make").stdout, re.M))

    assert set(listed) == set(targets)
    assert set(re.findall(r"^([a-z-]+):", makefile, re.M)) == set(targets)


def test_demo_passes_arguments_on_and_is_replaced_by_the_system(tmp_path: Path) -> None:
    recipe = run("make", "--dry-run", "demo", "ARGS=--once").stdout
    script = (ROOT / "scripts/demo.sh").read_text()

    assert recipe.strip() == "exec scripts/demo.sh --once"
    assert script.splitlines()[-1] == 'exec "${VENV:-.venv}/bin/python" manage.py standalone --demo "$@"'


def test_ci_is_make_test_without_standard_input() -> None:
    script = ROOT / ".ci/run"

    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "exec make test </dev/null"


def test_pytest_is_the_last_thing_that_make_test_runs() -> None:
    last = (ROOT / "scripts/test.sh").read_text().splitlines()[-1]

    assert last == 'check pytest "$BIN/python" -m pytest -n 3 ${CI:+--maxfail=10} "$@"'


# The virtual environment


@pytest.mark.parametrize("version", ["3.10.12", "3.14.0"])
def test_a_python_of_the_wrong_version_gives_one_clear_line(tmp_path: Path, version: str) -> None:
    python = executable(
        tmp_path / "python", f'#!/bin/sh\n[ "$1" = --version ] && echo Python {version} && exit\nexit 1\n'
    )

    result = run("scripts/venv.sh", PYTHON=str(python), VENV=str(tmp_path / "venv"))

    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"error: Punctual needs Python 3.11, 3.12 or 3.13; {python} is Python {version}."
        " Name another one: make PYTHON=/path/to/python3.12"
    ]


def test_a_python_that_is_not_there_gives_one_clear_line(tmp_path: Path) -> None:
    result = run("scripts/venv.sh", PYTHON="/nowhere/python", VENV=str(tmp_path / "venv"))

    assert result.returncode == 1
    assert result.stdout.startswith(
        "error: Punctual needs Python 3.11, 3.12 or 3.13; /nowhere/python is not there."
    )
    assert len(result.stdout.splitlines()) == 1


def test_a_python_without_ensurepip_says_which_package_brings_it(tmp_path: Path) -> None:
    python = executable(
        tmp_path / "python",
        f'#!/bin/sh\n[ "$2" = "import ensurepip" ] && exit 1\nexec {sys.executable} "$@"\n',
    )

    result = run("scripts/venv.sh", PYTHON=str(python), VENV=str(tmp_path / "venv"))

    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"error: {python} cannot make virtual environments (no ensurepip). On Debian or Ubuntu:"
        f" sudo apt-get install python{VERSION}-venv"
    ]


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tooling") / "venv"
    result = run("scripts/venv.sh", PYTHON=sys.executable, VENV=str(folder))
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith(f"Making the virtual environment {folder} with ")
    return folder


def test_what_is_installed_already_is_not_installed_again_until_the_list_changes(
    venv: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "requirements-none.txt"
    wanted.write_text("# nothing\n")
    installing = [f"Installing what {wanted} lists"]

    def say() -> list[str]:
        return run("scripts/venv.sh", wanted, VENV=str(venv)).stdout.splitlines()

    assert say() == installing
    assert say() == []
    wanted.write_text("# still nothing\n")
    assert say() == installing


def test_a_list_that_another_list_includes_counts_as_part_of_it(venv: Path, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.txt", tmp_path / "outer.txt"
    inner.write_text("# a\n")
    outer.write_text(f"-r {inner}\n")
    assert run("scripts/venv.sh", outer, VENV=str(venv)).stdout

    inner.write_text("# b\n")

    assert run("scripts/venv.sh", outer, VENV=str(venv)).stdout


def test_when_pip_fails_its_own_output_is_shown(venv: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "requirements-wrong.txt"
    wanted.write_text(f"{tmp_path}/no-such-package\n")

    result = run("scripts/venv.sh", wanted, VENV=str(venv))

    assert result.returncode == 1
    assert "no-such-package" in result.stdout
    assert result.stdout.splitlines()[-1] == f"error: pip could not install {wanted}; its output is above"


# The services


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("DATABASE_URL", "postgresql://me:secret@127.0.0.1:9/x"),
        ("REDIS_URL", "redis://:secret@127.0.0.1:9/0"),
        ("BROKER_URL", "pyamqp://me:secret@127.0.0.1:9//"),
        ("DOCKER_HOST", "tcp://127.0.0.1:9"),
    ],
)
def test_a_service_that_the_environment_names_and_that_is_not_there_fails_in_one_line(
    variable: str, url: str
) -> None:
    result = run(sys.executable, "-m", "scripts.services", **{variable: url})
    errors = [line for line in result.stdout.splitlines() if line.startswith("error: ")]

    assert result.returncode == 1
    assert len(errors) == 1
    assert f", where {variable} says it is: " in errors[0]
    assert "secret" not in result.stdout


def test_elsewhere_it_says_what_is_missing_and_how_to_get_it() -> None:
    postgres, redis = services.SERVICES[:2]

    lines = services.how_to_get({postgres: "connection refused", redis: "timed out"})

    assert lines[0].startswith("PostgreSQL is missing or out of reach (postgresql://")
    assert lines[0].endswith("): connection refused")
    assert lines[1].startswith("Redis is missing or out of reach (redis://")
    assert lines[2].endswith("the packages are: postgresql redis-server")
    assert lines[3] == "If they run elsewhere, say where in DATABASE_URL, REDIS_URL"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:secret@host/0", "redis://:…@host/0"),
        ("no route to postgresql://me:secret@host/x today", "no route to postgresql://me:…@host/x today"),
        ("postgresql://me@host/x", "postgresql://me@host/x"),
        ("unix:///var/run/docker.sock", "unix:///var/run/docker.sock"),
    ],
)
def test_passwords_are_never_shown(text: str, shown: str) -> None:
    assert services.without_password(text) == shown


def test_what_is_started_holds_no_pipe_of_the_caller_open(tmp_path: Path) -> None:
    """CI waits until every holder of its pipes is gone; a daemon never goes."""
    pid = tmp_path / "pid"
    start = (
        "import pathlib, sys; from scripts import debian; debian.LOG = pathlib.Path(sys.argv[1]) / 'log';"
        "debian.run(['sh', '-c', 'sleep 300 & echo $! > ' + sys.argv[1] + '/pid; echo said'])"
    )

    result = run(sys.executable, "-c", start, tmp_path)  # returns only when the pipe is closed

    os.kill(int(pid.read_text()), 9)
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_command_that_fails_shows_the_end_of_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "LOG", tmp_path / "log")
    (tmp_path / "log").write_text("from an earlier command\n")

    with pytest.raises(debian.CommandFailed) as caught:
        debian.run(["sh", "-c", "seq 20; exit 4"])

    assert str(caught.value).splitlines() == [
        "sh -c seq 20; exit 4 ended with 4:",
        *(f"  {number}" for number in range(6, 21)),
    ]
