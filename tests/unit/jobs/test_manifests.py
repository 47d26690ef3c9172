"""Files of jobs are read strictly; whatever is wrong is told with its line and field."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.manifests import read_manifest
from jobs.declared.wanted import Place, declared_twice
from jobs.declared.yaml_text import CoreLoader, dump
from jobs.definitions import READERS
from scheduler_project.kernel.clock import thread_cpu_s

JOB = "name: a, type: Script, command: 'true', schedule: '@daily'"


def read(text: str, owner: str = "ops") -> Any:
    wanted, problems = read_manifest(text, "jobs.yaml", owner)
    return wanted, [str(problem) for problem in problems]


def value_of(text: str) -> Any:
    loader = CoreLoader(text)
    (node,) = loader.nodes()
    return loader.construct_document(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: no", {"a": "no"}),
        ("a: on", {"a": "on"}),
        ("a: 12:30", {"a": "12:30"}),
        ("a: 2027-01-01", {"a": "2027-01-01"}),
        ("a: 2027-01-01T00:00:00Z", {"a": "2027-01-01T00:00:00Z"}),
        ("a: 010", {"a": "010"}),
        ("a: 0o14", {"a": "0o14"}),
        ("a: 0x10", {"a": "0x10"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: .NaN", {"a": ".NaN"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 5", {"a": 5}),
        ("a: -5", {"a": -5}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: .", {"a": "."}),
        ("a: +", {"a": "+"}),
        ("a: '5'", {"a": "5"}),
        ("a: true", {"a": True}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: @x", None),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: &x {b: 1}\nc: {<<: *x, b: 2}", {"a": {"b": 1}, "c": {"b": 2}}),
    ],
)
def test_values_are_those_of_json_and_all_else_is_a_text(text: str, value: Any) -> None:
    if value is None:
        assert read(text)[1]
    else:
        assert value_of(text) == value


def test_documents_are_jobs_or_lists_of_jobs_with_their_places() -> None:
    wanted, problems = read(
        f"---\n{{{JOB}}}\n---\n# none\n---\n- {{{JOB}, owner: me}}\n-\n  {{{JOB}, env: {{A: no}}}}\n"
    )
    assert problems == []
    assert [(item.key, item.place) for item in wanted] == [
        (("ops", "a"), Place("jobs.yaml", 2)),
        (("me", "a"), Place("jobs.yaml", 6)),
        (("ops", "a"), Place("jobs.yaml", 8)),
    ]
    assert wanted[2].definition.env == {"A": "no"}


LAUGHS = "&a [x, x, x, x, x, x, x, x, x]" + "".join(
    f", &{name} [{', '.join(['*' + before] * 9)}]" for before, name in pairwise("abcdefghij")
)


@pytest.mark.parametrize("field", READERS)
def test_anchors_that_stand_for_billions_are_refused_without_writing_them(field: str) -> None:
    given = {"name": "a", "type": "Script", "command": "'true'", "schedule": "'@daily'"}
    given[field] = f"{{all: [{LAUGHS}]}}"
    began = thread_cpu_s()
    _, problems = read("{" + ", ".join(f"{name}: {value}" for name, value in given.items()) + "}")
    assert thread_cpu_s() - began < 2.0
    assert problems[0].startswith((f"jobs.yaml:1: {field}: ", f"jobs.yaml:1: {field}.all: "))
    assert len(problems[0]) < 500


def test_names_that_are_merged_over_and_over_are_merged_once() -> None:
    lines = ["&a {x: 1}"] + [
        f"&{name} {{<<: [{', '.join(['*' + before] * 9)}]}}" for before, name in pairwise("abcdefghij")
    ]
    assert value_of("\n".join(f"- {line}" for line in lines)) == [{"x": 1}] * 10


def test_a_name_that_is_a_list_is_refused_in_words() -> None:
    assert read("? [a, b]\n: 1\n")[1] == ["jobs.yaml:1: a list is not a name: names are texts."]


def test_defaults_can_be_shared_by_an_anchor() -> None:
    (_, job), problems = read(f"- &base {{{JOB}, retries: 3}}\n- {{<<: *base, name: b}}\n")
    assert problems == []
    assert (job.definition.name, job.definition.retries) == ("b", 3)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "[]"])
def test_a_file_may_declare_nothing(text: str) -> None:
    assert read(text) == ([], [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- name: a\n  name: b\n", "jobs.yaml:2: 'name' is there twice."),
        (f"- {{{JOB},\n  env: {{A: x,\n    A: y}}}}\n", "jobs.yaml:3: 'A' is there twice."),
        ("- 5: a\n", "jobs.yaml:1: '5' is not a text: a name that looks like something else needs quotes."),
        (f"- {{{JOB}, env: {{true: x}}}}\n", "jobs.yaml:1: 'true' is not a text: a name that looks like"),
        ("- a\n", "jobs.yaml:1: This is no job"),
        (f"version: 1\ndefaults: {{}}\njobs:\n- {{{JOB}}}\n", "jobs.yaml:3: This is no job: write the list"),
        (f"\njobs:\n- {{{JOB}}}\n", "jobs.yaml:2: This is no job: write the list itself, without 'jobs'"),
        ("5\n", "jobs.yaml:1: This is no job"),
        ("\n- {name: !!python/name:os.system x}\n", "jobs.yaml:2: could not determine a constructor"),
        (f"- {{{JOB}, retries: !!int x}}\n", "jobs.yaml:1: 'x' is no int."),
        ("- {name: !!binary aGVsbG8=}\n", "jobs.yaml:1: could not determine a constructor"),
        ('- {name: "\\ud800"}\n', "jobs.yaml:1: a half of a surrogate pair is not a character."),
        ("a: [\n", "jobs.yaml:2: while parsing a flow node, expected the node content"),
        ("- *x\n", "jobs.yaml:1: found undefined alias"),
        ("a\0", "jobs.yaml:1: Not YAML: unacceptable character"),
        ("[" * 3000, "jobs.yaml:1: It is nested too deep."),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, problem: str) -> None:
    wanted, (told,) = read(text)
    assert wanted == []
    assert told.startswith(problem)


def test_all_that_is_wrong_with_all_jobs_is_told_with_line_and_field() -> None:
    text = """- name: a
  type: Script
  command: "true"
  schedule: 61 * * * *
  retries: yes
- name: b
  type: Skript
  command: "true"
  schedule: "@daily"
  colour: red
"""
    wanted, problems = read(text)
    assert wanted == []
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["jobs.yaml:4", "schedule"],
        ["jobs.yaml:5", "retries"],
        ["jobs.yaml:10", "colour"],
        ["jobs.yaml:7", "type"],
    ]


def test_an_owner_is_needed_from_somewhere() -> None:
    _, (problem,) = read(f"{{{JOB}}}", owner="")
    assert problem == "jobs.yaml:1: owner: This field is required."


def test_a_job_that_is_declared_twice_is_told_with_both_places() -> None:
    wanted, _ = read(f"- {{{JOB}}}\n- {{{JOB}, owner: me}}\n- {{{JOB}}}\n")
    (problem,) = declared_twice(wanted)
    assert str(problem) == "jobs.yaml:3: name: ops has a job 'a' already, at jobs.yaml:1."


def test_texts_of_several_lines_are_shown_as_lines() -> None:
    assert dump({"command": "a\nb\n", "name": "ü"}) == "command: |\n  a\n  b\nname: ü\n"


PIECES = st.sampled_from([
    JOB, "env: ", "schedule: ", "name: a\n", "- ", "  ", "\n", "---\n", "{", "}", "[", "]", ": ", ", ", "&a ",
    "*a", "<<: *a\n", "!!int ", "'", '"', "5", "~", "|\n", "\t", "\x00", "\\ud800", "? ", "%YAML 1.1\n",
])  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join))
def test_any_text_is_read_or_told_with_a_line(text: str) -> None:
    _, problems = read_manifest(text, "jobs.yaml", "ops")
    assert all(1 <= problem.place.line <= text.count("\n") + 2 for problem in problems)
