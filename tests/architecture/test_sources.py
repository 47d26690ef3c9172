"""What the design says of the sources, held by reading them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler_project.kernel.resources import read_queries
from scheduler_project.standalone.options import BASE_DIR

PACKAGES = ("access", "beat", "containers", "executions", "jobs", "scheduler_project")
WRITERS = {"executions/transitions.py", "executions/sql/transitions.sql", "executions/sql/schema.sql"}
WRITES_STATE = [
    re.compile(r"\.state\s*=[^=]"),  # of an object
    re.compile(r"\.update\([^)]*\bstate\s*="),  # over the ORM
    re.compile(r"\bupdate_fields\s*=\s*\[[^\]]*[\"']state[\"']"),
    re.compile(r"\bbulk_(?:update|create)\("),
    re.compile(r"(?<!class )\bExecution\(|\bExecution\.objects\.(?:create|get_or_create|update_or_create)\("),
    re.compile(r"(?is)\bUPDATE\s+executions_execution\b.*?\bSET\b(?:(?!\bWHERE\b)[^;])*?\bstate\s*="),
    re.compile(r"(?i)\bINSERT\s+INTO\s+executions_execution\b"),
]


def sources(*suffixes: str) -> list[Path]:
    found = [path for name in PACKAGES for path in (BASE_DIR / name).rglob("*") if path.suffix in suffixes]
    return sorted(path for path in found if "migrations" not in path.parts)


def name(path: Path) -> str:
    return path.relative_to(BASE_DIR).as_posix()


def writes_state(text: str, suffix: str = ".py") -> bool:
    patterns = WRITES_STATE if suffix == ".py" else WRITES_STATE[-2:]  # in SQL, e.state = 'x' compares
    return any(pattern.search(text) for pattern in patterns)


def test_nobody_but_the_transitions_writes_state() -> None:
    assert {
        name(path) for path in sources(".py", ".sql") if writes_state(path.read_text(), path.suffix)
    } <= WRITERS


@pytest.mark.parametrize(
    "text",
    [
        "execution.state = State.ACTIVE",
        "Execution.objects.filter(id=1).update(reason='x', state='Active')",
        "row.save(update_fields=['reason', 'state'])",
        "Execution(id=1)",
        "Execution.objects.create(id=1)",
        "UPDATE executions_execution e\nSET reason = 'x', state = 'Active'",
        "insert into executions_execution (id) values (1)",
    ],
)
def test_that_search_would_find_it(text: str) -> None:
    assert writes_state(text)


@pytest.mark.parametrize(
    "text", ["if row.state == State.ACTIVE:", "UPDATE executions_execution SET attempt = 1"]
)
def test_that_search_finds_no_reader(text: str) -> None:
    assert not writes_state(text)


@pytest.mark.parametrize("path", sources(".sql"), ids=name)
def test_every_query_says_what_it_is_for(path: Path) -> None:
    package = ".".join(path.relative_to(BASE_DIR).parent.parts)
    queries = read_queries(package, path.name)
    assert queries
    for query, text in queries.items():
        assert re.match(r"-- \S.{10,}", text), f"{query} has no purpose line"


def test_every_script_begins_with_what_it_is_for() -> None:
    scripts = sources(".lua")
    assert scripts
    assert [name(path) for path in scripts if not re.match(r"-- \S.{15,}", path.read_text())] == []


def test_modules_are_small() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in sources(".py")}
    assert {module: length for module, length in lengths.items() if length >= 400} == {}


def test_no_sql_is_written_in_code() -> None:
    """Hand-written queries lie in .sql files; what partitions.py composes is names into DDL."""
    query = re.compile(r"""["'](?:SELECT|INSERT|UPDATE|DELETE)\s[^"']*\b(?:FROM|INTO|SET)\b""")
    found = {name(path) for path in sources(".py") if query.search(path.read_text())}
    allowed = {name(path) for path in sources(".py") if "standalone" in path.parts}
    assert found - allowed <= {"executions/partitions.py"}
