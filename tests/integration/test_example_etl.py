"""The demo's jobs, run as a worker runs them: a process in ``examples``, told by its environment alone.

The numbers that the warehouse must hold are computed here from the same file in another way (fixed columns,
whole cents, a walk over days), or are written down as counted with awk.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import psycopg
import pytest

from tests import services

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PIPELINE = "python etl/daily_sales_pipeline.py"
FRESHNESS = "python etl/warehouse_freshness.py"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
HEADER = " customer_id  date number_of_cds  dollar_value"
ROWS = "SELECT customer_kind, basket, orders, cds, (revenue * 100)::int FROM warehouse.daily_sales"


@pytest.fixture
def warehouse() -> Iterator[str]:
    with services.database() as url:
        yield url


def environment(variables: dict[str, str]) -> dict[str, str]:
    """What a run gets: its own variables and a PATH with this interpreter first, nothing of ours."""
    python = Path(sys.executable).parent
    return {"PATH": f"{python}{os.pathsep}{SYSTEM_PATH}", "PYTHONDONTWRITEBYTECODE": "1", **variables}


def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        shlex.split(command),
        cwd=EXAMPLES,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def load(warehouse: str, day: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(PIPELINE, WAREHOUSE_URL=warehouse, PARAM_EXECUTION_DATE=day, **variables)


def query(warehouse: str, statement: str) -> list[tuple]:
    with psycopg.connect(warehouse) as connection:
        return connection.execute(statement).fetchall()


def rows_of(warehouse: str, day: str) -> set[tuple]:
    return set(query(warehouse, f"{ROWS} WHERE sales_date = '{day}'"))


def packaged_file() -> Path:
    return Path(str(distribution("lifetimes").locate_file("lifetimes/datasets/CDNOW_master.txt")))


def expected_rows(day: str) -> set[tuple]:
    """The rows for ``day`` (YYYYMMDD): (kind, basket, orders, CDs, cents)."""
    known: set[str] = set()
    baskets: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for text in sorted(packaged_file().read_text().splitlines()[1:], key=lambda text: text[7:15]):
        customer, when, cds = text[1:6], text[7:15], int(text[15:18])
        cents = int(text[18:].strip().replace(".", ""))
        if when > day:
            break
        if cents == 0:
            continue
        if when < day:
            known.add(customer)
        else:
            baskets[customer].append((cds, cents))
    totals: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for customer, lines in baskets.items():
        cds, cents = sum(line[0] for line in lines), sum(line[1] for line in lines)
        size = "1 CD" if cds == 1 else "2-3 CDs" if cds < 4 else "4-6 CDs" if cds < 7 else "7+ CDs"
        total = totals["returning" if customer in known else "new", size]
        total[:] = [total[0] + 1, total[1] + cds, total[2] + cents]
    return {(*key, *total) for key, total in totals.items()}


def sales_file(folder: Path, *lines: str) -> str:
    path = folder / "sales.txt"
    path.write_text("\r\n".join([HEADER, *lines]) + "\r\n")
    return str(path)


# The pipeline: what it loads


def test_a_day_of_the_present_is_loaded_from_the_same_day_of_1997(warehouse):
    done = load(warehouse, "2026-11-30", PUNCTUAL_EXECUTION_ID="e-1", PUNCTUAL_ATTEMPT="2")

    assert (done.returncode, done.stderr) == (0, "")
    assert rows_of(warehouse, "2026-11-30") == expected_rows("19971130")
    assert query(
        warehouse,
        "SELECT sum(orders), sum(cds), sum(revenue)::text, min(source_date)::text, min(execution_id)"
        " FROM warehouse.daily_sales",
    ) == [(111, 310, "5068.90", "1997-11-30", "e-1")]


def test_the_log_tells_what_was_read_rejected_and_loaded(warehouse):
    log = load(warehouse, "2026-01-05", PUNCTUAL_EXECUTION_ID="e-1", PUNCTUAL_ATTEMPT="2").stdout

    assert "sales of 2026-01-05 (execution e-1, attempt 2)" in log
    assert "2026-01-05 is read as 1997-01-05" in log
    assert "licence: MIT" in log
    assert "69,659 lines read, 256 of them of the day" in log
    assert "253 lines accepted, 3 rejected" in log
    assert log.count("dollar_value 0.00 is not above zero") == 3
    assert "3 into warehouse.rejected_sales" in log


def test_a_day_with_new_customers_and_rejected_lines_is_right(warehouse):
    load(warehouse, "2026-01-05")

    rows = rows_of(warehouse, "2026-01-05")
    assert rows == expected_rows("19970105")
    assert {row[0] for row in rows} == {"new", "returning"}
    rejected = query(warehouse, "SELECT line_number, line FROM warehouse.rejected_sales ORDER BY 1")
    lines = packaged_file().read_text().splitlines()
    assert [line.split() for _, line in rejected] == [lines[number - 1].split() for number, _ in rejected]
    assert len(rejected) == 3


def test_loading_a_day_twice_leaves_the_same_rows(warehouse):
    load(warehouse, "2026-01-05")
    first = sorted(query(warehouse, f"{ROWS} ORDER BY 1, 2"))
    again = load(warehouse, "2026-01-05", PUNCTUAL_EXECUTION_ID="e-2")

    assert again.returncode == 0
    assert f"in the place of {len(first)};" in again.stdout
    assert sorted(query(warehouse, f"{ROWS} ORDER BY 1, 2")) == first
    assert query(warehouse, "SELECT count(*) FROM warehouse.rejected_sales") == [(3,)]
    assert query(warehouse, "SELECT DISTINCT execution_id FROM warehouse.daily_sales") == [("e-2",)]


def test_runs_of_one_day_at_the_same_time_leave_one_set_of_rows(warehouse):
    variables = environment({"WAREHOUSE_URL": warehouse, "PARAM_EXECUTION_DATE": "2026-11-30"})
    running = [subprocess.Popen(shlex.split(PIPELINE), cwd=EXAMPLES, env=variables) for _ in range(3)]

    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert rows_of(warehouse, "2026-11-30") == expected_rows("19971130")


def test_a_load_leaves_other_days_alone(warehouse):
    load(warehouse, "2026-11-30")
    load(warehouse, "2027-11-30")

    assert rows_of(warehouse, "2026-11-30") == rows_of(warehouse, "2027-11-30") == expected_rows("19971130")


def test_29_february_is_read_as_28_february(warehouse):
    assert "2028-02-29 is read as 1997-02-28" in load(warehouse, "2028-02-29").stdout
    assert rows_of(warehouse, "2028-02-29") == expected_rows("19970228")


# The pipeline: lines that are no sales


def test_each_line_that_is_no_sale_is_kept_aside_with_its_reason(warehouse, tmp_path):
    good = [f" 0000{n} 19970701  1   10.00" for n in range(1, 5)] * 7
    bad = {
        " 00005 19970701  1": "3 values instead of 4",
        " 00005 19970731  0   10.00": "number_of_cds '0' is not a whole number above zero",
        " x0005 19970701  1   10.00": "customer_id 'x0005' is not a number",
        " 00005 19970701  1.5   10.00": "number_of_cds '1.5' is not a whole number above zero",
        " 00005 19970701  1   -10.00": "dollar_value -10.00 is not above zero: given away, not sold",
        " 00005 19970701  1   NaN": "dollar_value 'NaN' is not an amount such as 11.77",
        " 00005 19970701  1   1e999999": "dollar_value '1e999999' is not an amount such as 11.77",
        " 00005 19970701  1   1.005": "dollar_value 1.005 has a fraction of a cent",
        " 00005 1997W01-1  1   10.00": "date '1997W01-1' is not a day written YYYYMMDD",
        " 00005 19970229  1   10.00": "date '19970229' is not a day written YYYYMMDD",
    }
    done = load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, *good, *bad))

    assert done.returncode == 0, done.stderr
    of_the_day = {reason for line, reason in bad.items() if " 19970701  " in line and len(line.split()) == 4}
    kept = query(warehouse, "SELECT line_number, reason FROM warehouse.rejected_sales")
    assert {reason for _, reason in kept} == of_the_day
    assert {number for number, _ in kept} <= set(range(len(good) + 2, len(good) + 2 + len(bad)))
    assert "3 without a readable day" in done.stdout
    assert rows_of(warehouse, "2026-07-01") == {("new", "7+ CDs", 4, 28, 28000)}


def test_lines_of_one_customer_on_one_day_are_one_order(warehouse, tmp_path):
    lines = [" 00001 19970630  1   10.00", *[" 00001 19970701  2   20.00"] * 2, " 00002 19970701  1   5.00"]
    load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, *lines))

    assert rows_of(warehouse, "2026-07-01") == {
        ("returning", "4-6 CDs", 1, 4, 4000),
        ("new", "1 CD", 1, 1, 500),
    }


def test_a_day_that_was_mostly_rejected_is_not_loaded(warehouse, tmp_path):
    good = " 00001 19970701  1   10.00"
    load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, good))
    done = load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, good, " 00002 19970701  0   10.00"))

    assert done.returncode == 5
    assert "1 of the day's 2 lines were rejected" in done.stderr
    assert rows_of(warehouse, "2026-07-01") == {("new", "1 CD", 1, 1, 1000)}


def test_a_day_without_sales_empties_its_rows(warehouse, tmp_path):
    load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, " 00001 19970701  1   10.00"))
    done = load(warehouse, "2026-07-01", SALES_FILE=sales_file(tmp_path, " 00001 19970702  1   10.00"))

    assert done.returncode == 0
    assert rows_of(warehouse, "2026-07-01") == set()


# The pipeline: what it refuses


@pytest.mark.parametrize("day", ["", "yesterday", "2026-13-01", "2026-02-29", "20261130", "2026-11-30T00:00"])
def test_a_bad_date_is_refused(day):
    done = run(PIPELINE, WAREHOUSE_URL="postgresql://nobody@127.0.0.1:1/none", PARAM_EXECUTION_DATE=day)

    assert (done.returncode, done.stdout) == (2, "")
    assert "PARAM_EXECUTION_DATE" in done.stderr
    assert day in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_warehouse_url_is_refused():
    done = run(PIPELINE, PARAM_EXECUTION_DATE="2026-11-30")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: WAREHOUSE_URL is not set")


def test_another_kind_of_warehouse_is_refused_without_showing_its_password():
    done = run(PIPELINE, PARAM_EXECUTION_DATE="2026-11-30", WAREHOUSE_URL="mysql://me:s3cret@127.0.0.1/x")

    assert done.returncode == 2
    assert "postgresql://" in done.stderr
    assert "s3cret" not in done.stderr


def test_a_warehouse_that_does_not_answer_is_named_as_the_cause():
    done = load("postgresql://nobody@127.0.0.1:1/none", "2026-11-30")

    assert done.returncode == 4
    assert "the warehouse did not take the load" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_load_that_the_warehouse_refuses_changes_nothing(warehouse, tmp_path):
    before = sales_file(tmp_path, " 00001 19970701  1   10.00")
    load(warehouse, "2026-07-01", SALES_FILE=before)
    with psycopg.connect(warehouse) as connection:
        connection.execute("ALTER TABLE warehouse.daily_sales ADD CHECK (revenue < 15)")
    done = load(
        warehouse,
        "2026-07-01",
        SALES_FILE=sales_file(tmp_path, " 00001 19970701  1   10.00", " 00002 19970701  2   20.00"),
    )

    assert done.returncode == 4
    assert rows_of(warehouse, "2026-07-01") == {("new", "1 CD", 1, 1, 1000)}


def test_a_source_that_is_not_there_is_named(tmp_path):
    missing = str(tmp_path / "nothing.txt")
    done = load("postgresql://nobody@127.0.0.1:1/none", "2026-11-30", SALES_FILE=missing)

    assert done.returncode == 3
    assert missing in done.stderr


@pytest.mark.parametrize("content", [b"", b"a b c\n1 2 3\n", b" customer_id  date\n", b"\xff\xfe\x00"])
def test_a_source_that_is_another_file_is_refused(tmp_path, content):
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    done = load("postgresql://nobody@127.0.0.1:1/none", "2026-11-30", SALES_FILE=str(path))

    assert done.returncode == 3
    assert "Traceback" not in done.stderr


# The other jobs


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
    variables = environment({"WAREHOUSE_URL": warehouse, "PARAM_WAIT_S": "60"})
    with subprocess.Popen(
        shlex.split(FRESHNESS), cwd=EXAMPLES, env=variables, stdout=subprocess.PIPE, text=True
    ) as check:
        load(warehouse, "2026-11-30")
        output, _ = check.communicate(timeout=60)

    assert check.returncode == 0
    assert "1 day(s) loaded" in output


@pytest.mark.parametrize("variable", ["PARAM_MAX_AGE_S", "PARAM_WAIT_S"])
def test_the_freshness_check_refuses_a_bad_number(variable):
    done = run(FRESHNESS, WAREHOUSE_URL="postgresql://nobody@127.0.0.1:1/none", **{variable: "-1"})

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
    assert demo_jobs()["daily-sales-etl"] == {
        "name": "daily-sales-etl",
        "type": "Python",
        "command": "python etl/daily_sales_pipeline.py",
        "schedule": "0 2 * * *",
        "parameters": {"execution_date": "{{ ds }}"},
        "retries": 3,
        "retryDelay": "5m",
        "timeout": "60m",
        "owner": "data-engineering",
    }


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
