"""The daily sales pipeline: extract one day, clean and aggregate it, load it into the warehouse.

Run it in the folder ``examples`` as ``python etl/daily_sales_pipeline.py``; ``examples/README.md`` says
what it reads from its environment and what its exit codes mean.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from sales.errors import QualityTooLow, StepFailed
from sales.extract import data_day, find_source, read_lines
from sales.load import DayLoad, load_day
from sales.parameters import Parameters, read_parameters
from sales.transform import Reject, Sale, aggregate, validate

MOST_REJECTED = 0.2  # of a day's lines; beyond it the source is broken, not the odd line
REJECTS_SHOWN = 10


def main(environ: Mapping[str, str]) -> int:
    """Do the run that ``environ`` describes; the exit code says how it went."""
    started = time.monotonic()
    try:
        parameters = read_parameters(environ)
        print(
            f"sales of {parameters.execution_date} "
            f"(execution {parameters.execution_id}, attempt {parameters.attempt})"
        )
        run(parameters)
    except StepFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"done in {time.monotonic() - started:.2f} s")
    return 0


def run(parameters: Parameters) -> None:
    """Extract, transform and load the day of ``parameters``; raises StepFailed."""
    load = transform(parameters)
    replaced = load_day(parameters.warehouse_url, load)
    print(
        f"load: {len(load.rows)} rows into warehouse.daily_sales for {load.sales_date}, "
        f"in the place of {replaced}; {len(load.rejects)} into warehouse.rejected_sales"
    )


def transform(parameters: Parameters) -> DayLoad:
    """What the warehouse is to hold of the day, with a line in the log for each step."""
    source = find_source(parameters.sales_file)
    day = data_day(parameters.execution_date)
    print(f"source: {source.title}")
    print(f"source: the data are of 1997 and 1998; {parameters.execution_date} is read as {day}")
    lines = list(read_lines(source.path))
    sales, all_rejects = validate(lines)
    rejects = [reject for reject in all_rejects if reject.day == day]
    report_extract(len(lines), all_rejects, [sale for sale in sales if sale.day == day], rejects)
    rows = aggregate(sales, day)
    print(
        f"transform: {sum(row.orders for row in rows)} orders "
        f"({sum(row.orders for row in rows if row.customer_kind == 'new')} by new customers), "
        f"{sum(row.cds for row in rows)} CDs, ${sum(row.revenue for row in rows):,.2f}"
    )
    return DayLoad(
        sales_date=parameters.execution_date,
        source_date=day,
        rows=rows,
        rejects=rejects,
        execution_id=parameters.execution_id,
    )


def report_extract(read: int, all_rejects: list[Reject], sales: list[Sale], rejects: list[Reject]) -> None:
    """Log what was read and rejected; raises QualityTooLow where too much of the day was rejected."""
    of_day = len(sales) + len(rejects)
    undated = sum(reject.day is None for reject in all_rejects)
    print(f"extract: {read:,} lines read, {of_day:,} of them of the day, {undated} without a readable day")
    print(f"validate: {len(sales):,} lines accepted, {len(rejects)} rejected")
    for reject in rejects[:REJECTS_SHOWN]:
        print(f"  line {reject.line.number}: {reject.reason}")
    if len(rejects) > REJECTS_SHOWN:
        print(f"  and {len(rejects) - REJECTS_SHOWN} more")
    if len(rejects) > MOST_REJECTED * of_day:
        raise QualityTooLow(
            f"{len(rejects)} of the day's {of_day} lines were rejected, more than {MOST_REJECTED:.0%}: "
            "nothing was loaded; look at the source"
        )


if __name__ == "__main__":
    # In a pipe, Python would hold these lines back until the end, and errors would overtake them.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(os.environ))
