"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import get_resolver

from executions.states import MOVES, State

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
)


def test_the_configuration_table_names_exactly_the_variables_that_are_read() -> None:
    settings = (ROOT / "scheduler_project/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings)) | {"PUNCTUAL_HOME"}
    table = README.split("## Configuration")[1].split("## ")[0]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([A-Z_]+)`", line.split("|")[1])
    }
    assert named == read


def test_the_table_of_moves_is_the_one_in_the_code() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs/states.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and "---" not in line
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


def test_every_rest_path_of_the_readme_exists() -> None:
    paths = set(re.findall(r"`(?:GET|POST) (/api/v1/[^`?]*)`", README))
    assert len(paths) >= 7
    for path in paths:
        get_resolver().resolve(path.replace("{id}", "01a22b14-f804-7009-9230-2fb898b5b11b"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []
