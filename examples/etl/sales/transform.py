"""Transform: lines become sales, sales become orders, orders become the day's figures. Pure functions.

1. Validate. A line that is no sale is rejected with its reason and kept aside; none is dropped in silence.
2. Clean. The data have no order number: what one customer bought on one day is taken as one order, so
   a line that repeats another exactly is one more part of that order, not an error.
3. Aggregate. Orders are counted by kind of customer (new on that day, or returning) and size of basket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sales.extract import COLUMNS, Line

BASKETS = ((1, "1 CD"), (3, "2-3 CDs"), (6, "4-6 CDs"))  # (most CDs, name), smallest first
LARGEST_BASKET = "7+ CDs"
CENT = Decimal("0.01")
MOST_DIGITS = 6  # of a number of CDs or of whole dollars; beyond that it is a misprint
_AMOUNT = re.compile(rf"-?\d{{1,{MOST_DIGITS}}}(\.\d{{1,9}})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sale:
    """A valid line: so many CDs for so many dollars, by one customer on one day."""

    customer: str
    day: date
    cds: int
    dollars: Decimal


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is no sale. ``day`` is None where not even that could be read."""

    line: Line
    day: date | None
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class DailySales:
    """One row of the warehouse table, less the day."""

    customer_kind: str
    basket: str
    orders: int
    cds: int
    revenue: Decimal


class _Invalid(Exception):
    """The value is not what its column allows; the message is the reason."""


def validate(lines: Iterable[Line]) -> tuple[list[Sale], list[Reject]]:
    """The sales and the rejects among ``lines``, both in the file's order."""
    sales: list[Sale] = []
    rejects: list[Reject] = []
    for line in lines:
        day: date | None = None
        try:
            customer, day_text, cds, dollars = _four_values(line)
            day = _day(day_text)
            sales.append(Sale(_customer(customer), day, _cds(cds), _dollars(dollars)))
        except _Invalid as error:
            rejects.append(Reject(line, day, str(error)))
    return sales, rejects


def aggregate(sales: Iterable[Sale], day: date) -> list[DailySales]:
    """The figures of ``day``, sorted; ``sales`` must hold all earlier days too: they tell who is new."""
    first_days: dict[str, date] = {}
    orders: dict[str, tuple[int, Decimal]] = {}
    for sale in sales:
        first_days[sale.customer] = min(sale.day, first_days.get(sale.customer, sale.day))
        if sale.day == day:
            cds, dollars = orders.get(sale.customer, (0, Decimal(0)))
            orders[sale.customer] = (cds + sale.cds, dollars + sale.dollars)
    rows: dict[tuple[str, str], DailySales] = {}
    for customer, (cds, dollars) in orders.items():
        key = ("new" if first_days[customer] == day else "returning", basket_of(cds))
        so_far = rows.get(key, DailySales(*key, 0, 0, Decimal(0)))
        rows[key] = DailySales(*key, so_far.orders + 1, so_far.cds + cds, so_far.revenue + dollars)
    return sorted(rows.values())


def basket_of(cds: int) -> str:
    """The name of the basket size that an order of ``cds`` CDs belongs to."""
    return next((name for most, name in BASKETS if cds <= most), LARGEST_BASKET)


def _four_values(line: Line) -> tuple[str, ...]:
    if len(line.values) != len(COLUMNS):
        raise _Invalid(f"{len(line.values)} values instead of {len(COLUMNS)}")
    return line.values


def _day(text: str) -> date:
    try:
        # Eight digits only: fromisoformat alone would take 1997W011 too.
        return date.fromisoformat(text if len(text) == 8 and _digits(text) else "")
    except ValueError:
        raise _Invalid(f"date {text!r} is not a day written YYYYMMDD") from None


def _customer(text: str) -> str:
    if not _digits(text):
        raise _Invalid(f"customer_id {text!r} is not a number")
    return text


def _cds(text: str) -> int:
    if not (_digits(text) and len(text) <= MOST_DIGITS and int(text) > 0):
        raise _Invalid(f"number_of_cds {text!r} is not a whole number above zero")
    return int(text)


def _dollars(text: str) -> Decimal:
    if not _AMOUNT.fullmatch(text):
        raise _Invalid(f"dollar_value {text!r} is not an amount such as 11.77")
    value = Decimal(text)
    if value <= 0:
        raise _Invalid(f"dollar_value {text} is not above zero: given away, not sold")
    if value != value.quantize(CENT):
        raise _Invalid(f"dollar_value {text} has a fraction of a cent")
    return value


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
