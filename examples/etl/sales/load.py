"""Load: one day replaces itself in the warehouse, all of it or nothing of it.

Delete and insert are one transaction under an advisory lock. So a day may be loaded any number of times,
by a retry or by two runs at once, and holds the rows of the last one that committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import psycopg

from sales.errors import WarehouseFailed
from sales.transform import DailySales, Reject

CONNECT_TIMEOUT_S = 10
LOCK = "SELECT pg_advisory_xact_lock(hashtext('warehouse.daily_sales'))"
SCHEMA_IS_THERE = "SELECT to_regclass('warehouse.daily_sales') IS NOT NULL"
INSERT_SALES = """
    INSERT INTO warehouse.daily_sales
        (sales_date, customer_kind, basket, orders, cds, revenue, source_date, execution_id)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
INSERT_REJECTS = """
    INSERT INTO warehouse.rejected_sales (sales_date, line_number, line, reason, execution_id)
    VALUES (%s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLoad:
    """All that the warehouse is to hold of one day."""

    sales_date: date
    source_date: date
    rows: list[DailySales]
    rejects: list[Reject]
    execution_id: str


def load_day(warehouse_url: str, load: DayLoad) -> int:
    """Put ``load`` in the place of what the warehouse has of that day; returns how many rows it replaced.

    Raises WarehouseFailed, with nothing changed, where the warehouse does not answer or refuses.
    """
    try:
        with psycopg.connect(
            warehouse_url, connect_timeout=CONNECT_TIMEOUT_S, application_name="daily-sales-etl"
        ) as connection:
            connection.execute(LOCK)
            _make_schema(connection)
            return _replace(connection, load)
    except psycopg.Error as error:
        raise WarehouseFailed(f"the warehouse did not take the load: {str(error).strip()}") from error


def _make_schema(connection: psycopg.Connection) -> None:
    """Make the tables where there are none; a role that may not make a schema can use one made for it."""
    answer = connection.execute(SCHEMA_IS_THERE).fetchone()
    if answer is None or not answer[0]:
        connection.execute((Path(__file__).parent / "schema.sql").read_bytes())


def _replace(connection: psycopg.Connection, load: DayLoad) -> int:
    day, source_day, execution_id = load.sales_date, load.source_date, load.execution_id
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM warehouse.rejected_sales WHERE sales_date = %s", [day])
        cursor.execute("DELETE FROM warehouse.daily_sales WHERE sales_date = %s", [day])
        replaced = cursor.rowcount
        cursor.executemany(
            INSERT_SALES,
            [
                (
                    day,
                    row.customer_kind,
                    row.basket,
                    row.orders,
                    row.cds,
                    row.revenue,
                    source_day,
                    execution_id,
                )
                for row in load.rows
            ],
        )
        cursor.executemany(
            INSERT_REJECTS,
            [
                (day, reject.line.number, " ".join(reject.line.values), reject.reason, execution_id)
                for reject in load.rejects
            ],
        )
    return replaced
