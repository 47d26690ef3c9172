"""What a run is told, read from its environment once, at the start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sales.errors import BadInput

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    execution_date: date
    warehouse_url: str
    execution_id: str
    attempt: str
    sales_file: Path | None


def read_parameters(environ: Mapping[str, str]) -> Parameters:
    """The parameters in ``environ``; raises BadInput for one that is missing or makes no sense."""
    sales_file = environ.get("SALES_FILE", "")
    return Parameters(
        execution_date=read_day(environ, "PARAM_EXECUTION_DATE"),
        warehouse_url=read_warehouse_url(environ),
        execution_id=environ.get("PUNCTUAL_EXECUTION_ID") or "by hand",
        attempt=environ.get("PUNCTUAL_ATTEMPT") or "1",
        sales_file=Path(sales_file) if sales_file else None,
    )


def read_day(environ: Mapping[str, str], name: str) -> date:
    """The day in variable ``name``, written YYYY-MM-DD and in no other way."""
    text = environ.get(name, "")
    if not text:
        raise BadInput(f"{name} is not set: give the day to load, for example {name}=2026-11-30")
    if not _ISO_DAY.fullmatch(text):
        raise BadInput(f"{name}={text!r} is not a day: write it as YYYY-MM-DD, for example 2026-11-30")
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{name}={text!r} is not a day of the calendar: {error}") from error


def read_warehouse_url(environ: Mapping[str, str]) -> str:
    """WAREHOUSE_URL; the messages never repeat it, since it may hold a password."""
    url = environ.get("WAREHOUSE_URL", "")
    if not url:
        raise BadInput("WAREHOUSE_URL is not set: give the warehouse as postgresql://user@host:port/database")
    if not url.startswith(_SCHEMES):
        raise BadInput("WAREHOUSE_URL is not a PostgreSQL address: it has to begin with postgresql://")
    return url


def read_seconds(environ: Mapping[str, str], name: str, default: int) -> int:
    """The whole, not negative number of seconds in variable ``name``, or ``default`` where it is not set."""
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit()):
        raise BadInput(f"{name}={text!r} is not a whole number of seconds, for example {default}")
    return int(text)
