"""The demo's other jobs, run for real, and the list that the demo posts."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import services
from tests.example_body import BODY
from tests.integration.example_runs import EXAMPLES, NO_WAREHOUSE, load, run, start

FRESHNESS = "python etl/warehouse_freshness.py"


@pytest.fixture
def warehouse() -> Iterator[str]:
    with services.database() as url:
        yield url


def test_the_freshness_check_tells_what_is_loaded(warehouse):
    load(warehouse, "2026-11-30")
    done = run(FRESHNESS, WAREHOUSE_URL=warehouse)

    assert done.returncode == 0
    assert done.stdout.startswith("1 day(s) loaded, 2026-11-30 to 2026-11-30: 111 orders, $5,068.90;")


def test_the_freshness_check_fails_on_an_empty_warehouse(warehouse):
    done = run(FRESHNESS, WAREHOUSE_URL=warehouse)

    assert done.returncode == 1
    assert "no day has been loaded" in done.stderr


def test_the_freshness_check_fails_on_an_old_load(warehouse):
    load(warehouse, "2026-11-30")
    with psycopg.connect(warehouse) as connection:
        connection.execute("UPDATE warehouse.daily_sales SET loaded_at = now() - interval '1 hour'")

    assert run(FRESHNESS, WAREHOUSE_URL=warehouse, PARAM_MAX_AGE_S="3599").returncode == 1
    assert run(FRESHNESS, WAREHOUSE_URL=warehouse, PARAM_MAX_AGE_S="7200").returncode == 0


def test_the_freshness_check_waits_for_a_load_that_is_being_made(warehouse):
    with start(FRESHNESS, WAREHOUSE_URL=warehouse, PARAM_WAIT_S="60") as check:
        load(warehouse, "2026-11-30")
        output, _ = check.communicate(timeout=60)

    assert check.returncode == 0
    assert "1 day(s) loaded" in output


@pytest.mark.parametrize("variable", ["PARAM_MAX_AGE_S", "PARAM_WAIT_S"])
def test_the_freshness_check_refuses_a_bad_number(variable):
    done = run(FRESHNESS, WAREHOUSE_URL=NO_WAREHOUSE, **{variable: "-1"})

    assert done.returncode == 2
    assert variable in done.stderr


def test_the_heartbeat_tells_the_free_space():
    done = run("sh heartbeat.sh")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("disk: ")
    assert done.stdout.count("\n") == 1


def test_the_heartbeat_fails_where_the_disk_is_fuller_than_allowed():
    done = run("sh heartbeat.sh", PARAM_MIN_FREE_MB="999999999999")

    assert done.returncode == 1
    assert "MB free, less than 999999999999 MB" in done.stderr


def test_the_heartbeat_refuses_a_bad_limit():
    done = run("sh heartbeat.sh", PARAM_MIN_FREE_MB="1; echo x")

    assert (done.returncode, done.stdout) == (2, "")
    assert "'1; echo x' is not a whole number of megabytes" in done.stderr


def import_feed(feed: Path) -> subprocess.CompletedProcess[str]:
    return run("python flaky_import.py", PARAM_FEED=str(feed))


def test_the_import_fails_while_the_file_is_not_there(tmp_path):
    done = import_feed(tmp_path / "orders.csv")

    assert done.returncode == 3
    assert "the partner has not delivered it yet" in done.stderr


def test_the_import_fails_on_a_file_that_was_cut_off(tmp_path):
    feed, whole = tmp_path / "orders.csv", b"order,amount\n1,10.00\n2,20.00\n"
    feed.write_bytes(whole[:-5])
    Path(f"{feed}.sha256").write_text(f"{hashlib.sha256(whole).hexdigest()}  orders.csv\n")
    cut_off = import_feed(feed)
    feed.write_bytes(whole)
    mended = import_feed(feed)

    assert cut_off.returncode == 3
    assert "SHA-256" in cut_off.stderr
    assert mended.returncode == 0
    assert "2 rows below the header" in mended.stdout


# The list of the demo's jobs


def demo_jobs() -> dict[str, dict]:
    return {job["name"]: job for job in json.loads((EXAMPLES / "demo_jobs.json").read_text())}


def test_the_first_demo_job_is_the_documented_one():
    assert demo_jobs()["daily-sales-etl"] == BODY


def test_the_demo_has_one_job_of_each_kind_of_schedule():
    assert [job["schedule"] for job in demo_jobs().values()] == [
        "0 2 * * *",
        {"every": "10s"},
        "now",
        {"after": "5s"},
    ]


def test_each_demo_job_ends_as_the_demo_expects(warehouse):
    codes = {}
    for name, job in demo_jobs().items():
        parameters = {**job["parameters"]}
        if parameters.get("execution_date") == "{{ ds }}":
            parameters["execution_date"] = "2026-11-30"
        variables = {f"PARAM_{key.upper()}": str(value) for key, value in parameters.items()}
        codes[name] = run(job["command"], WAREHOUSE_URL=warehouse, **variables).returncode

    assert codes == {
        "daily-sales-etl": 0,
        "machine-heartbeat": 0,
        "flaky-import": 3,
        "warehouse-freshness": 0,
    }
