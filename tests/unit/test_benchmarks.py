"""How the benchmarks tell their figures; what they measure depends on the machine and is tested nowhere."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import BENCHMARKS, read_options
from benchmarks.figures import Figure, as_json, as_table, percentile

FIGURE = Figure("dispatch", "due_to_confirmed_s", "s", [0.9, 0.512345, 0.6])


def test_json_is_a_list_of_figures_with_median_and_extremes() -> None:
    assert json.loads(as_json([FIGURE])) == [
        {
            "name": "dispatch",
            "metric": "due_to_confirmed_s",
            "unit": "s",
            "median": 0.6,
            "min": 0.5123,
            "max": 0.9,
        }
    ]


def test_a_table_names_each_metric_and_the_machine() -> None:
    head, row, blank, machine = as_table([FIGURE]).splitlines()
    assert row.split() == ["dispatch", "due_to_confirmed_s", "0.6", "0.5123", "0.9", "s"]
    assert ("median" in head, blank, "cores" in machine) == (True, "", True)


def test_all_are_run_unless_some_are_named() -> None:
    assert read_options([]).only == list(BENCHMARKS)
    options = read_options(["--only", "preload", "--json", "--rounds", "5"])
    assert (options.only, options.json, options.rounds) == (["preload"], True, 5)


@pytest.mark.parametrize(("percent", "value"), [(1, 1.0), (50, 2.0), (75, 3.0), (99, 4.0), (100, 4.0)])
def test_a_percentile_is_a_value_that_was_seen(percent: float, value: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], percent) == value


@pytest.mark.parametrize("arguments", [["--only", "nonsense"], ["--rounds", "0"], ["--rounds", "x"]])
def test_what_is_not_there_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(arguments)
    assert arguments[1] in capsys.readouterr().err
