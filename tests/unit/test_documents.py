"""The documents say what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from executions.states import MOVES, State
from scheduler_project.documentation import schema

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
)
FAULTS = ("## Faults", "## More faults, of single parts and of changes")
WRITTEN_IN_OTHER_WORDS = {
    "1 << 20": "1 MiB",
    "1 << 34": "16 GiB",  # defaults and limits that are no literals, or that people write otherwise
    "64 << 20": "64 MiB",
    "1 << 30": "1 GiB",
    "6 << 20": "6 MiB",
    "1 << 40": "2^40",
    "1 << 50": "2^50",
    "str(PUNCTUAL_HOME / 'logs')": "PUNCTUAL_HOME",
    "str(PUNCTUAL_LOG_DIR / 'archive')": "PUNCTUAL_LOG_DIR",
    "256 << 10": "256 KiB",
}


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below ``heading``, without its head."""
    lines = text.partition(f"\n{heading}\n")[2].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("| "))
    rows = []
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line[1:-1].split("|")])
    return rows


def readings() -> dict[str, ast.Call]:
    """The calls ``env.<kind>("NAME", …)`` in settings.py, by name."""
    tree = ast.parse((ROOT / "scheduler_project/settings.py").read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("env.")
    ]
    return {ast.literal_eval(call.args[0]): call for call in calls}


def in_words(value: ast.expr) -> str:
    text = ast.unparse(value)
    return WRITTEN_IN_OTHER_WORDS.get(text) or str(ast.literal_eval(value))


def configuration() -> dict[str, list[str]]:
    return {row[0].strip("`"): row[1:] for row in table_rows(README, "## Configuration")}


def test_the_configuration_table_names_exactly_the_variables_that_are_read() -> None:
    """PUNCTUAL_HOME is read before there is an ``env``: that one begins with what lies there."""
    assert set(configuration()) == {*readings(), "PUNCTUAL_HOME"}


@pytest.mark.parametrize("name", sorted(readings()))
def test_the_configuration_table_has_the_default_and_what_is_allowed(name: str) -> None:
    default, allowed, _meaning = configuration()[name]
    call = readings()[name]
    if len(call.args) > 1:
        assert in_words(call.args[1]) in default
    for choice in ast.literal_eval(call.args[2]) if len(call.args) > 2 else []:
        assert choice in allowed
    for limit in call.keywords:
        assert in_words(limit.value) in allowed


def test_the_table_of_moves_is_the_one_in_the_code() -> None:
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in (ROOT / "docs/states.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(("| event", "| JOB_"))
    ]
    header, *body = rows
    written = {
        (row[0], state): target
        for row in body
        for state, target in zip(header[1:], row[1:], strict=True)
        if target
    }
    assert {State(state) for state in header[1:]} == {state for moves in MOVES.values() for state in moves}
    assert written == {
        (str(event), str(state)): str(target)
        for event, moves in MOVES.items()
        for state, target in moves.items()
    }


def operations() -> list[tuple[str, str]]:
    """(method, path) of all that the API answers to (test_rest_schema.py); what differs in a path is {id}."""
    return [
        (method.upper(), re.sub(r"{\w+}", "{id}", path))
        for path, methods in schema()["paths"].items()
        for method in methods
    ]


def test_the_rest_table_is_all_that_the_schema_has() -> None:
    written = [row[0].strip("`").split(" ") for row in table_rows(README, "## REST")]
    assert sorted((method, path) for method, path in written) == sorted(operations())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def named_tests() -> list[tuple[str, str]]:
    """The fault, and what its row in docs/reliability.md calls its test."""
    text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    rows = [row for heading in FAULTS for row in table_rows(text, heading)]
    named = [(fault, re.findall(r"`(tests/[^`]+)`", tests)) for fault, _what, tests in rows]
    assert [fault for fault, tests in named if not tests] == []
    return [(fault, test) for fault, tests in named for test in tests]


@pytest.mark.parametrize(("fault", "test"), named_tests())
def test_each_fault_names_a_test_that_exists(fault: str, test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name in found if name else found, fault
