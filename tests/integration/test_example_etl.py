"""The demo's daily sales pipeline, run for real against a warehouse of its own.

The numbers that the warehouse must hold are computed here from the same file in another way (fixed columns,
whole cents, a walk over days), or are written down as counted with awk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from time import sleep

import psycopg
import pytest

from scheduler_project.kernel.clock import monotonic
from tests import services
from tests.integration.example_runs import NO_WAREHOUSE, PIPELINE, load, run, start

HEADER = " customer_id  date number_of_cds  dollar_value"
ROWS = "SELECT customer_kind, basket, orders, cds, (revenue * 100)::int FROM warehouse.daily_sales"


@pytest.fixture
def warehouse() -> Iterator[str]:
    with services.database() as url:
        yield url


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


def wait_for_waiting_sessions(connection: psycopg.Connection, count: int) -> None:
    """Return once ``count`` sessions of this database wait for a lock."""
    give_up = monotonic() + 60
    while monotonic() < give_up:
        # The view is read once a transaction unless told to read anew.
        connection.execute("SELECT pg_stat_clear_snapshot()")
        waiting = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()
        if waiting == (count,):
            return
        sleep(0.02)
    raise AssertionError(f"{waiting} sessions wait for a lock, not {count}")


# What it loads


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
    load(warehouse, "2026-11-29")
    with psycopg.connect(warehouse) as holder:  # they all meet at this lock and go on together
        holder.execute("LOCK TABLE warehouse.daily_sales, warehouse.rejected_sales")
        running = [
            start(PIPELINE, WAREHOUSE_URL=warehouse, PARAM_EXECUTION_DATE="2026-11-30") for _ in range(3)
        ]
        wait_for_waiting_sessions(holder, len(running))

    logs = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], logs
    assert rows_of(warehouse, "2026-11-30") == expected_rows("19971130")


def test_a_load_leaves_other_days_alone(warehouse):
    load(warehouse, "2026-11-30")
    load(warehouse, "2027-11-30")

    assert rows_of(warehouse, "2026-11-30") == rows_of(warehouse, "2027-11-30") == expected_rows("19971130")


def test_29_february_is_read_as_28_february(warehouse):
    assert "2028-02-29 is read as 1997-02-28" in load(warehouse, "2028-02-29").stdout
    assert rows_of(warehouse, "2028-02-29") == expected_rows("19970228")


# Lines that are no sales


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


# What it refuses


@pytest.mark.parametrize("day", ["", "yesterday", "2026-13-01", "2026-02-29", "20261130", "2026-11-30T00:00"])
def test_a_bad_date_is_refused(day):
    done = run(PIPELINE, WAREHOUSE_URL=NO_WAREHOUSE, PARAM_EXECUTION_DATE=day)

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
    done = load(NO_WAREHOUSE, "2026-11-30")

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
    done = load(NO_WAREHOUSE, "2026-11-30", SALES_FILE=missing)

    assert done.returncode == 3
    assert missing in done.stderr


@pytest.mark.parametrize("content", [b"", b"a b c\n1 2 3\n", b" customer_id  date\n", b"\xff\xfe\x00"])
def test_a_source_that_is_another_file_is_refused(tmp_path, content):
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    done = load(NO_WAREHOUSE, "2026-11-30", SALES_FILE=str(path))

    assert done.returncode == 3
    assert "Traceback" not in done.stderr
