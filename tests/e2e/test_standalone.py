"""``manage.py standalone`` as a whole: start, stop, kill, start again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from scheduler_project.standalone.children import spawn
from scheduler_project.standalone.claims import claim_home
from scheduler_project.standalone.demo import Api
from scheduler_project.standalone.leftovers import Record, birth
from scheduler_project.standalone.options import BASE_DIR
from scheduler_project.standalone.postgres import Postgres
from tests.e2e.system import System, environment, manage, survivors
from tests.processes import PROC, text_of
from tests.services import free_port

UP = r"everything is up after ([\d.]+) s"
PROCESSES = ("record_events", "audit_events", "worker -l", "beat", "-Q maintenance", "waitress-serve")
STOP_ORDER = [
    "reporter",
    "web",
    "beat",
    "worker",
    "recorder and auditor",
    "maintenance",
    "valkey",
    "postgresql",
]


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="punctual-e2e-"))
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def start(home):
    """Starts systems and, whatever the test does, leaves none behind."""
    started: list[System] = []

    def begin(*words: str, **more: str) -> System:
        system = System(home, *words, **more)
        started.append(system)
        return system

    yield begin
    for system in started:
        if system.process.poll() is None:
            system.process.terminate()
            try:
                system.process.wait(40)
            except subprocess.TimeoutExpired:
                system.process.kill()
                system.process.wait()


def snapshot(system: System) -> tuple[dict[int, str], dict[int, str | None]]:
    processes = system.processes()
    return processes, {pid: birth(pid) for pid in processes}


def test_it_starts_stops_in_order_leaves_nothing_and_keeps_its_data(start, home):
    system = start(PUNCTUAL_RUNTIME="process")
    assert float(system.wait_for(UP)[1]) < 20
    system.wait_for(r"make an account on another terminal")
    account = {"DJANGO_SUPERUSER_PASSWORD": "kept-over-the-stop"}
    made = manage(home, "createsuperuser", "--no-input", "--username=ann", "--email=a@example.org", **account)
    assert made.returncode == 0, made.stderr
    for name in ("services.json", "secret_key", "passwords.json"):
        assert (home / name).stat().st_mode & 0o777 == 0o600
    processes = snapshot(system)

    assert system.stop(signal.SIGINT) == 0

    stops = [line[9:-2] for line in system.output.splitlines() if line.startswith("stopping ")]
    assert stops == STOP_ORDER
    assert system.output.endswith("stopped\n")
    assert "killed" not in system.output
    assert survivors(*processes) == {}

    again = start(PUNCTUAL_RUNTIME="process")
    again.wait_for(UP)
    assert "making the database" not in again.output
    second = manage(
        home, "createsuperuser", "--no-input", "--username=ann", "--email=a@example.org", **account
    )
    assert "already taken" in second.stderr
    assert again.stop(signal.SIGTERM) == 0


def test_killed_parts_are_started_again_and_a_killed_supervisor_leaves_nothing(start):
    system = start(PUNCTUAL_RUNTIME="process")
    system.wait_for(UP)
    old = {words: eventually(lambda words=words: system.child(words)) for words in PROCESSES}
    for words in PROCESSES:
        os.kill(old[words], signal.SIGKILL)
    for name in ("recorder", "auditor", "worker", "beat", "maintenance", "web"):
        system.wait_for(rf"^{name} ended unasked \(by SIGKILL\)")
    for words in PROCESSES:
        assert eventually(lambda words=words: system.child(words) not in {None, old[words]})

    processes = snapshot(system)
    system.process.kill()
    system.wait()
    assert survivors(*processes, 15.0) == {}

    again = start(PUNCTUAL_RUNTIME="process")
    again.wait_for(UP)
    assert again.stop() == 0


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def test_what_a_killed_supervisor_left_is_ended_by_the_next_start(start, home, sleeper):
    """As where the kernel does not end the children of the dead: a database without a supervisor."""
    claim_home(home)
    Record(home).add("recorder", sleeper.pid, signal.SIGKILL)
    postgres = Postgres(home, home / "postgresql.log")
    assert os.waitpid(spawn(postgres.making()), 0)[1] == 0
    postgres.made()
    server = spawn(postgres.server())
    assert eventually(postgres.ready)

    system = start(PUNCTUAL_RUNTIME="process")

    system.wait_for(rf"ending recorder \(process {sleeper.pid}\), left by a start that was killed")
    system.wait_for(rf"ending postgresql \(process {server}\), left by a start that was killed")
    system.wait_for(UP)
    assert sleeper.wait(10) == -signal.SIGKILL
    assert os.waitpid(server, 0)[1] == 0  # in order: its data was written
    assert system.stop() == 0


def test_a_second_request_stops_at_once(start):
    system = start(PUNCTUAL_RUNTIME="process")
    system.wait_for(UP)
    processes = snapshot(system)
    os.kill(system.child("record_events"), signal.SIGSTOP)  # it cannot end in order
    system.process.send_signal(signal.SIGINT)
    system.wait_for("stopping recorder and auditor")
    time.sleep(0.6)  # sooner, it is the same request
    assert system.stop(signal.SIGINT) == 130
    assert survivors(*processes) == {}


def test_each_refusal_is_one_line_and_starts_nothing(start, home, tmp_path):
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refusals = [
            manage(tmp_path / "file", "standalone", PUNCTUAL_PORT=str(free_port())),
            manage(home, "standalone", PUNCTUAL_PORT=port),
        ]
    assert [done.returncode for done in refusals] == [1, 1]
    assert refusals[0].stderr.startswith("PUNCTUAL_HOME: ")
    assert refusals[1].stderr.startswith(f"PUNCTUAL_PORT: port {port} ")
    assert all(done.stderr.count("\n") == 1 and not done.stdout for done in refusals)
    assert not (home / "postgresql-data").exists()


def test_a_second_start_on_the_same_folder_is_refused(start, home):
    system = start(PUNCTUAL_RUNTIME="process")
    system.wait_for("answer")
    second = manage(home, "standalone", PUNCTUAL_PORT=str(free_port()))
    assert second.returncode == 1
    assert second.stderr == (
        f"Punctual already runs on {home} (process {system.process.pid})."
        " Stop it, or set PUNCTUAL_HOME and PUNCTUAL_PORT to others.\n"
    )
    assert system.stop() == 0


def test_it_ends_when_nobody_reads_its_output_any_more(home):
    reader, writer = os.pipe()
    env = environment(home, PUNCTUAL_RUNTIME="process", PUNCTUAL_PORT=str(free_port()))
    command = [sys.executable, str(BASE_DIR / "manage.py"), "standalone"]
    with subprocess.Popen(command, env=env, stdout=writer) as process:
        os.close(writer)
        os.read(reader, 10)
        os.close(reader)
        assert process.wait(40) in {0, 1}


def running(command: str) -> list[str]:
    """The processes whose command line is ``command``, wherever they hang."""
    lines = [text_of(path) for path in PROC.glob("[0-9]*/cmdline")]
    return [line for line in lines if line == command.replace(" ", "\0") + "\0"]


def eventually(ask, timeout_s=15.0):
    """What ``ask`` says as soon as it is true."""
    until = time.perf_counter() + timeout_s
    while not (answer := ask()) and time.perf_counter() < until:
        time.sleep(0.05)
    return answer


def test_the_demo_shows_one_run_of_each_job_and_ends(start, home):
    system = start("--demo", "--once")
    most = 0.0
    while system.process.poll() is None:
        most = max(most, system.memory_mb())
        time.sleep(0.5)
    assert system.process.returncode == 0, system.output

    heading = next(line for line in system.output.splitlines() if line.startswith("job  "))
    rows = {line.split()[0]: line for line in system.output.partition(heading)[2].splitlines()[1:5]}
    assert set(rows) == {"daily-sales-etl", "machine-heartbeat", "flaky-import", "warehouse-freshness"}
    assert "Completed Abnormally  3 " in rows["flaky-import"]
    assert all("Completed Normally" in row for name, row in rows.items() if name != "flaky-import")
    assert 0 < most < 600

    again = start("--demo", "--once")
    assert again.wait(150) == 0, again.output
    assert "job daily-sales-etl: there already, one run now" in again.output
    kept = [part for part in system.output.splitlines() if "password" in part]
    assert [part.partition("password")[2] for part in kept] == [
        part.partition("password")[2] for part in again.output.splitlines() if "password" in part
    ]


def test_the_demos_account_works_and_its_runs_cannot_read_punctuals_database(start, home):
    system = start("--demo")
    system.wait_for(r"^\S+Z  daily-sales-etl +Completed Normally", 90)
    demo = json.loads((home / "demo.json").read_text())
    assert (home / "demo.json").stat().st_mode & 0o777 == 0o600
    assert set(demo) == {"url", "username", "password", "token"}
    assert demo["url"] == f"http://127.0.0.1:{system.port}"
    passwords = json.loads((home / "passwords.json").read_text())
    address = f"host={home}/postgresql user=warehouse password={passwords['warehouse']}"
    with psycopg.connect(f"{address} dbname=warehouse") as warehouse:
        tables = warehouse.execute("SELECT 1 FROM pg_tables WHERE tableowner = 'warehouse'").fetchall()
        assert tables
    for database in ("punctual", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(f"{address} dbname={database}")
    worker = Path(f"/proc/{system.child('worker -l WARNING')}/environ").read_text()
    assert passwords["punctual"] not in worker

    sleeper = {
        "name": "sleeper",
        "type": "Script",
        "command": "sleep 4211",
        "schedule": "now",
        "owner": "data-engineering",
    }
    assert Api(system.port, demo["token"]).post("/api/v1/jobs", sleeper)[0] == 201
    system.wait_for(r"^\S+Z  sleeper +Active")
    assert eventually(lambda: running("sleep 4211"))
    assert system.stop() == 0
    assert running("sleep 4211") == []
    again = start("--demo")
    again.wait_for(r"^\S+Z  sleeper +Waiting +lost, attempt 2", 90)
    assert again.stop() == 0
