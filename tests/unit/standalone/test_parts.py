"""Which parts are embedded, and what each process is told."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from scheduler_project.standalone.options import Options, given_environment
from scheduler_project.standalone.parts import NO_DATABASE, Parts

GIVEN = {
    "DATABASE_URL": "postgresql://db.example/punctual",
    "REDIS_URL": "redis://redis.example/0",
    "BROKER_URL": "pyamqp://mq.example//",
}


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="p-"))
    yield folder
    shutil.rmtree(folder)


def parts(home, given, *, demo=False) -> Parts:
    return Parts(Options(home=str(home), port=8123, demo=demo), given, home)


def test_nothing_given_means_all_embedded(home):
    found = parts(home, {})
    addresses = found.addresses("process")
    assert addresses["DATABASE_URL"].startswith("postgresql://punctual:")
    assert addresses["REDIS_URL"] == f"unix://{home}/valkey/valkey.sock?db=0"
    assert addresses["BROKER_URL"] == f"redis+socket://{home}/valkey/valkey.sock?virtual_host=1"
    assert found.databases == ["punctual"]


def test_what_is_given_is_used(home):
    found = parts(home, GIVEN)
    assert (found.postgres, found.valkey) == (None, None)
    assert found.addresses("docker") == {"PUNCTUAL_RUNTIME": "docker", **GIVEN}
    assert found.databases == []


def test_a_missing_broker_is_the_embedded_valkey(home):
    given = {name: url for name, url in GIVEN.items() if name != "BROKER_URL"}
    found = parts(home, given)
    assert found.valkey is not None
    assert found.addresses("docker")["REDIS_URL"] == GIVEN["REDIS_URL"]
    assert found.addresses("docker")["BROKER_URL"].startswith("redis+socket://")


def test_the_demo_has_a_warehouse_of_its_own_even_beside_a_given_database(home):
    found = parts(home, GIVEN, demo=True)
    assert found.databases == ["warehouse"]
    assert parts(home, {}, demo=True).databases == ["punctual", "warehouse"]
    assert parts(home, {**GIVEN, "WAREHOUSE_URL": "postgresql://wh.example/w"}, demo=True).postgres is None


def test_the_worker_sees_no_database_and_the_others_no_warehouse(home, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "")
    found = parts(home, {}, demo=True)
    worker, others = found.worker_environment("process"), found.environment("process")
    assert worker["DATABASE_URL"] == NO_DATABASE
    assert "punctual:" not in worker["WAREHOUSE_URL"]
    assert worker["PUNCTUAL_RUN_ENV"] == "WAREHOUSE_URL"
    assert worker["PUNCTUAL_PROCESS_WORKDIR"].endswith("examples")
    assert others["DATABASE_URL"].startswith("postgresql://punctual:")
    assert "WAREHOUSE_URL" not in others
    assert others["PUNCTUAL_HOME"] == str(home)
    assert others["PUNCTUAL_PORT"] == "8123"


def test_without_the_demo_the_worker_gets_no_commands(home):
    worker = parts(home, {}).worker_environment("docker")
    assert "WAREHOUSE_URL" not in worker
    assert "PUNCTUAL_PROCESS_WORKDIR" not in worker


def test_what_the_user_hands_on_to_runs_is_kept(home):
    worker = parts(home, {"PUNCTUAL_RUN_ENV": "TOKEN"}, demo=True).worker_environment("process")
    assert worker["PUNCTUAL_RUN_ENV"] == "TOKEN,WAREHOUSE_URL"


def test_allowed_hosts_do_not_shut_out_this_machine(home):
    env = parts(home, {"ALLOWED_HOSTS": "punctual.example"}).environment("process")
    assert env["ALLOWED_HOSTS"] == "punctual.example,127.0.0.1,localhost"


def test_passwords_are_made_once_and_for_the_owner_alone(home):
    first = parts(home, {}).addresses("process")
    assert parts(home, {}).addresses("process") == first
    assert (home / "passwords.json").stat().st_mode & 0o777 == 0o600


def test_given_is_the_environment_over_the_env_file_without_blanks(tmp_path):
    (tmp_path / ".env").write_text("REDIS_URL=redis://one/0\nPUNCTUAL_PORT=9000\n")
    given = given_environment(
        tmp_path, {"PUNCTUAL_PORT": "9100", "BROKER_URL": " ", "REDIS_URL": "redis://two/0"}
    )
    assert given == {"PUNCTUAL_PORT": "9100", "REDIS_URL": "redis://two/0"}


def test_options_survive_the_way_to_the_supervisor():
    options = Options(home="/a b/c", port=8000, demo=True, once=True)
    assert Options.from_text(options.to_text()) == options
