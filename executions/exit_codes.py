"""Exit codes as people write them, ``1, 75, 100-110`` (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

MOST_CODE = 255
_CODE = re.compile(r"[0-9]{1,9}", re.ASCII)
_SHORTEST_RANGE = 3


def read_codes(text: str) -> list[int]:
    """Each code once, as they come. InvalidValue for the first part that is neither a code nor a range."""
    parts = [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(code for part in parts if part for code in _read_part(part)))


def codes_text(codes: Iterable[int]) -> str:
    """The shortest text that ``read_codes`` reads back as the same codes in ascending order."""
    return ", ".join(part for run in _runs(sorted(set(codes))) for part in _run_texts(run))


def _read_part(part: str) -> range:
    first, dash, last = (end.strip() for end in part.replace("–", "-").partition("-"))
    least, most = _read_code(first), _read_code(last if dash else first)
    if not 1 <= least <= most <= MOST_CODE:
        raise InvalidValue(
            f"{shown(part)} is not an exit code nor a range of them. Allowed: whole numbers from 1 to "
            f"{MOST_CODE} and ranges, with commas between them, such as 1, 75, 100-110."
        )
    return range(least, most + 1)


def _read_code(text: str) -> int:
    """0, which no failure has, for what is no number."""
    return int(text) if _CODE.fullmatch(text) else 0


def _runs(codes: list[int]) -> list[list[int]]:
    """Ascending codes, cut wherever one is left out."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][-1] == code - 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    return runs


def _run_texts(run: list[int]) -> list[str]:
    return [f"{run[0]}-{run[-1]}"] if len(run) >= _SHORTEST_RANGE else [str(code) for code in run]
