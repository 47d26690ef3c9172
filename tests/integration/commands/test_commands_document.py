"""docs/commands.md says what the commands do: its examples run, its tables are complete."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import load_command_class

from access.models import ApiToken
from executions.models import Execution
from executions.transitions import record
from jobs.models import Job
from scheduler_project.doctor.parts import PARTS
from scheduler_project.kernel.clock import utcnow
from scheduler_project.operating.exits import Exit
from tests.integration.commands.conftest import Manage, write_log
from tests.integration.making import COMPLETED, STARTED, said
from tests.unit.test_documents import table_rows

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs/commands.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^    python manage\.py (.+)$", DOCUMENT, re.MULTILINE)
COMMANDS = ("jobs", "executions", "preview", "status", "doctor")


def parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The actions of a command by name, or itself."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
            return
    yield "", parser


def section(command: str) -> str:
    return DOCUMENT.partition(f"\n## {command}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_action_and_option_is_in_the_document(command: str) -> None:
    parser = load_command_class("scheduler_project", command).create_parser("manage.py", command)
    of_all = DOCUMENT.partition("## What all six take")[2].partition("### ")[0]
    of_django = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback"}
    of_django |= {"--force-color", "--skip-checks"}
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section(command), re.MULTILINE))
    for name, action in parsers(parser):
        told = rows[name] if name else section(command)
        options = {text for each in action._actions for text in each.option_strings if text.startswith("--")}
        missing = {text for text in options - of_django if text not in told and f"`{text}`" not in of_all}
        assert missing == set(), name


def test_the_table_of_exit_statuses_is_the_one_in_the_code() -> None:
    assert [int(row[0]) for row in table_rows(DOCUMENT, "### Exit statuses")] == sorted(Exit)


def test_the_table_of_parts_is_all_that_the_doctor_looks_at() -> None:
    rows = [line for line in section("doctor").splitlines() if line.startswith("| `")]
    assert [re.findall(r"`(\w+)`", row)[0] for row in rows] == list(PARTS)


def test_the_examples_work(
    manage: Manage, new_job: Callable[..., Job], member_of: Callable[..., User]
) -> None:
    """In the order in which they stand; those of doctor and status say how the parts of the tests are."""
    member_of("mia", "data-engineering")
    job = new_job("daily-sales-etl", owner="data-engineering")
    ended = Execution.objects.get(id=manage("jobs", "run", str(job.id), "--json").json["executionId"])
    record([said(STARTED, ended.id), said(COMPLETED, ended.id)], utcnow())
    write_log(ended, 1, b"loaded\n")
    assert len(EXAMPLES) > 20
    order = sorted(EXAMPLES, key=lambda example: "archive" in example)
    for example in order:
        waiting = Execution.objects.filter(job_id=job.id, state="Waiting").order_by("id").last()
        words = example.replace("EXECUTION", str(ended.id)).replace("WAITING", str(waiting and waiting.id))
        words = words.replace("TOKEN", str(ApiToken.objects.values_list("id", flat=True).first()))
        answer = manage(*shlex.split(words))
        assert answer.code == 0 or example.startswith(("doctor", "status")), (example, answer.err)
        assert answer.out, example
