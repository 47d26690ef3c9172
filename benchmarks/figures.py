"""Figures: what a benchmark measured, round by round, and how it is told."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one benchmark: a value for each round, in ``unit``."""

    name: str
    metric: str
    unit: str
    values: Sequence[float]

    def to_json(self) -> dict[str, str | float]:
        return {
            "name": self.name,
            "metric": self.metric,
            "unit": self.unit,
            "median": _rounded(median(self.values)),
            "min": _rounded(min(self.values)),
            "max": _rounded(max(self.values)),
        }


def as_json(figures: Iterable[Figure]) -> str:
    return json.dumps([figure.to_json() for figure in figures], indent=1)


def as_table(figures: Iterable[Figure]) -> str:
    """For people: the figures, and the machine that they come from."""
    lines = [f"{'benchmark':10} {'metric':28} {'median':>12} {'min':>12} {'max':>12}  unit"]
    for figure in figures:
        told = figure.to_json()
        values = "".join(f" {told[part]:>12,}" for part in ("median", "min", "max"))
        lines.append(f"{figure.name:10} {figure.metric:28}{values}  {figure.unit}")
    return "\n".join([*lines, "", machine()])


def machine() -> str:
    """Processor, cores and Python: figures of other machines cannot be compared with these."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in _lines(info) if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def percentile(values: Iterable[float], percent: float) -> float:
    """The least of ``values`` that at least that many percent of them do not exceed."""
    found = sorted(values)
    return found[max(0, math.ceil(len(found) * percent / 100) - 1)]


def progress(text: str) -> None:
    """What is going on, on standard error: standard output is for the figures alone."""
    sys.stderr.write(f"{text}\n")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _rounded(value: float) -> float:
    """To four significant digits: the rest is noise."""
    return float(f"{value:.4g}")
