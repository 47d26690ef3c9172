"""Text for a terminal: tables within its width, whole in a pipe; nothing that commands it (pure)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_project.kernel.texts import escaped, escaped_lines

GAP = "  "
CUT = "…"
_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,20}m)")
LEAST = 6
"""Characters that a column keeps, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Column:
    """``shrinks``: it may be cut where the width is short. ``right``: for numbers."""

    title: str
    shrinks: bool = False
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None) -> list[str]:
    """The lines, the first of them the titles. ``width``: of the terminal; None: nothing is cut."""
    cells = [[column.title for column in columns], *([_plain(cell) for cell in row] for row in rows)]
    widths = [max(map(breadth, texts)) for texts in zip(*cells, strict=True)]
    if width is not None:
        widths = _fitted(columns, widths, width)
    return [_line(columns, row, widths) for row in cells]


def breadth(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    return sum(_breadth_of(character) for character in text)


def _breadth_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, most: int) -> str:
    """``text`` in at most ``most`` columns; where it is cut, it ends with …"""
    if breadth(text) <= most:
        return text
    kept, left = "", most - 1
    for character in text:
        left -= _breadth_of(character)
        if left < 0:
            break
        kept += character
    return kept + CUT


def _plain(cell: object) -> str:
    return escaped(" ".join(str(cell).split()))


def _fitted(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Take from the widest column that may shrink, until all fit or none is left to take from."""
    fitted = list(widths)
    numbers = [number for number, column in enumerate(columns) if column.shrinks]
    over = sum(fitted) + len(GAP) * (len(fitted) - 1) - width
    while over > 0 and numbers:
        widest = max(numbers, key=lambda number: fitted[number])
        if fitted[widest] <= LEAST:
            break
        fitted[widest] -= 1
        over -= 1
    return fitted


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    parts = []
    for column, text, width in zip(columns, row, widths, strict=True):
        shown = cut(text, width)
        blanks = " " * (width - breadth(shown))
        parts.append(blanks + shown if column.right else shown + blanks)
    return GAP.join(parts).rstrip()


def for_terminal(text: str) -> str:
    """``text`` of several lines with its colours, and all else that a terminal would obey written out."""
    parts = _COLOUR.split(text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(part if number % 2 else escaped_lines(part) for number, part in enumerate(parts))
