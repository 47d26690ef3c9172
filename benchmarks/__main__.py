"""All benchmarks, or some of them, as a table or as JSON.

    python -m benchmarks [--only NAME]... [--rounds N] [--json]

Each module of ``BENCHMARKS`` has a function ``measure(rounds)`` that starts what it needs in places of its
own, and gives figures with a value for each round. What it says meanwhile goes to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from benchmarks import containers, dispatch, history, pipeline, preload
from benchmarks.figures import Figure, as_json, as_table
from tests.places import name_places
from tests.services import unique_name

BENCHMARKS: dict[str, Callable[[int], list[Figure]]] = {
    "containers": containers.measure,
    "dispatch": dispatch.measure,
    "history": history.measure,
    "pipeline": pipeline.measure,
    "preload": preload.measure,
}


def main() -> None:
    options = read_options(sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    name_places(unique_name())
    figures: list[Figure] = []
    for name in options.only:
        figures += BENCHMARKS[name](options.rounds)
    sys.stdout.write((as_json(figures) if options.json else as_table(figures)) + "\n")


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """``only``: names of benchmarks; ``rounds``; ``json``. Ends the program where they make no sense."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What a run costs, by stage.")
    parser.add_argument("--only", action="append", choices=sorted(BENCHMARKS), help="may be repeated")
    parser.add_argument("--rounds", type=_rounds, default=3, help="rounds of each (default: 3)")
    parser.add_argument("--json", action="store_true", help="a JSON list and nothing else")
    options = parser.parse_args(arguments)
    options.only = options.only or list(BENCHMARKS)
    return options


def _rounds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    main()
