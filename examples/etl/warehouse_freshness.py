"""Says what the warehouse holds and fails where its newest load is too old.

It reads WAREHOUSE_URL, PARAM_MAX_AGE_S (seconds, default two days) and PARAM_WAIT_S (for how long to wait
for a load that is just being made, in seconds, default 0). Exit codes: 0 fresh; 1 nothing loaded, or too
long ago; 2 a bad parameter; 4 the warehouse does not answer.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

import psycopg
from sales.errors import StepFailed, WarehouseFailed
from sales.load import CONNECT_TIMEOUT_S, SCHEMA_IS_THERE
from sales.parameters import read_seconds, read_warehouse_url

TWO_DAYS_S = 2 * 24 * 3600
POLL_S = 0.5
SUMMARY = """
    SELECT count(DISTINCT sales_date), min(sales_date), max(sales_date), sum(orders), sum(revenue),
           extract(epoch FROM now() - max(loaded_at))::float8
    FROM warehouse.daily_sales
"""


class NotFresh(StepFailed):
    """The newest load is too old, or there is none."""


def main(environ: Mapping[str, str]) -> int:
    """Do the check that ``environ`` describes; the exit code says how it went."""
    try:
        url = read_warehouse_url(environ)
        max_age_s = read_seconds(environ, "PARAM_MAX_AGE_S", TWO_DAYS_S)
        give_up = time.monotonic() + read_seconds(environ, "PARAM_WAIT_S", 0)
        print(wait_until_fresh(url, max_age_s, give_up))
    except StepFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def wait_until_fresh(url: str, max_age_s: int, give_up: float) -> str:
    """The warehouse's summary as soon as it is fresh; raises NotFresh where it is not by ``give_up``."""
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as connection:
            while True:
                try:
                    return summarise(connection, max_age_s)
                except NotFresh:
                    if time.monotonic() >= give_up:
                        raise
                time.sleep(POLL_S)
    except psycopg.Error as error:
        raise WarehouseFailed(f"the warehouse does not answer: {str(error).strip()}") from error


def summarise(connection: psycopg.Connection, max_age_s: int) -> str:
    """One line on what is loaded; raises NotFresh where that is nothing, or older than ``max_age_s``."""
    there = connection.execute(SCHEMA_IS_THERE).fetchone()
    row = connection.execute(SUMMARY).fetchone() if there and there[0] else None
    if row is None or not row[0]:
        raise NotFresh("no day has been loaded into warehouse.daily_sales: run etl/daily_sales_pipeline.py")
    days, first, last, orders, revenue, age_s = row
    if age_s > max_age_s:
        raise NotFresh(f"the newest load is {age_s:.0f} s old, allowed are {max_age_s} s")
    return (
        f"{days} day(s) loaded, {first} to {last}: {orders:,} orders, ${revenue:,.2f}; "
        f"the newest load is {age_s:.0f} s old"
    )


if __name__ == "__main__":
    sys.exit(main(os.environ))
