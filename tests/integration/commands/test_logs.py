"""``manage.py executions logs`` and ``manage.py jobs run -f``"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from executions.log_archive import log_archive
from executions.log_places import log_store
from executions.models import Execution
from executions.states import EventType
from executions.transitions import record
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from scheduler_project.operating.tables import for_terminal
from tests.integration.commands.conftest import Manage, write_log
from tests.integration.making import COMPLETED, FAILED, STARTED, said

Making = Callable[..., Job]


@pytest.fixture
def run(new_job: Making) -> Execution:
    return Execution.objects.get(job_id=new_job(schedule="now", retries=1, retryDelay="1s").id)


def test_the_output_of_an_attempt(manage: Manage, run: Execution) -> None:
    record([said(STARTED, run.id), said(COMPLETED, run.id)], utcnow())
    write_log(run, 1, b"one\n", b"two\nthree\n")
    assert manage("executions", "logs", str(run.id)).out == "one\ntwo\nthree\n"
    assert manage("executions", "logs", str(run.id), "--tail", "2").out == "two\nthree\n"
    assert manage("executions", "logs", str(run.id), "--attempt", "2").code == 3
    assert manage("executions", "logs", str(run.id), "--json").json["text"] == "one\ntwo\nthree\n"


def test_following_goes_through_all_attempts_and_says_how_it_ended(manage: Manage, run: Execution) -> None:
    record([said(STARTED, run.id), said(FAILED, run.id, exit_code=1)], utcnow())
    ended = said(COMPLETED, run.id, 2, exit_code=0, message="exit code 0")
    record([said(STARTED, run.id, 2), ended], utcnow())
    write_log(run, 1, b"no\n")
    write_log(run, 2, b"yes\n")
    followed = manage("executions", "logs", "-f", str(run.id), "--attempt", "1")
    assert (followed.code, followed.out) == (0, "no\nyes\n")
    assert followed.err == f"attempt 2\n{run.id}: Completed Normally (exit code 0)\n"


def test_what_is_in_the_archive_is_followed_to_its_end(manage: Manage, run: Execution) -> None:
    record([said(STARTED, run.id), said(COMPLETED, run.id)], utcnow())
    write_log(run, 1, b"yes\n")
    log_archive().keep(run.id, 1, log_store().output(run.id, 1))
    log_store().forget(run.id)
    assert manage("executions", "logs", "-f", str(run.id)).out == "yes\n"


def test_following_in_json_is_a_line_for_each_event(manage: Manage, run: Execution) -> None:
    record([said(STARTED, run.id), said(COMPLETED, run.id, exit_code=0)], utcnow())
    write_log(run, 1, b"yes\n")
    lines = manage("executions", "logs", "-f", str(run.id), "--json").out.splitlines()
    told = [json.loads(line) for line in lines]
    assert [each["event"] for each in told] == ["output", "end"]
    assert (told[0]["text"], told[1]["status"]) == ("yes\n", "Completed Normally")


@pytest.mark.parametrize(("how", "code"), [(COMPLETED, 0), (FAILED, 1)], ids=["completed", "failed"])
def test_a_run_that_is_followed_gives_its_end_as_status(
    manage: Manage, new_job: Making, how: EventType, code: int
) -> None:
    new_job(schedule="0 2 * * *", retries=0)
    made = manage("jobs", "run", "nightly", "--key", "k1", "--json").json
    run = Execution.objects.get(id=made["executionId"])
    record([said(STARTED, run.id), said(how, run.id)], utcnow())
    write_log(run, 1, b"done\n")
    ended = manage("jobs", "run", "nightly", "--key", "k1", "-f")
    assert (ended.code, ended.out) == (code, "done\n")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        ("\x1b]0;title\x07\n", "\\x1b]0;title\\x07\n"),
        ("\x1b[2J\x1b[1;1H", "\\x1b[2J\\x1b[1;1H"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("a\tb\u202e", "a\tb\\u202e"),
    ],
)
def test_output_on_a_terminal_has_its_colours_and_commands_nothing_else(text: str, safe: str) -> None:
    assert for_terminal(text) == safe
