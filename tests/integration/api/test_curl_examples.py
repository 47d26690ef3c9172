"""docs/api.md: each endpoint is there, and each of its lines works against a live server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import Settings
from rest_framework.test import APIClient

from executions.log_places import log_store
from executions.run_tokens import run_token
from executions.states import EventType
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import create
from tests.integration.api.test_executions import happen
from tests.integration.executions.brokers import purge
from tests.integration.executions.letters import bury
from tests.unit.test_documents import operations
from tests.web import web_server

PAGE = Path(__file__).resolve().parents[3] / "docs/api.md"

# A fixed date will be out of the history one day, and one to come be over.
DATES = {"2026-11-01": -8, "2026-11-08": -1, "2027-01-01": 30}


def calls() -> list[str]:
    """The calls of the page, in order, each on one line or several."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [call for block in blocks for call in re.split(r"\n(?=curl )", block.strip())]


def at_this_time(call: str) -> str:
    """What is a week ago or next month on the page is so today, too."""
    for date, days in DATES.items():
        call = call.replace(f"{date}T", f"{utcnow() + timedelta(days=days):%Y-%m-%d}T")
    return call


def endpoint(call: str) -> tuple[str, str]:
    words = shlex.split(call)
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if "-d" in words else "GET"
    (address,) = (word for word in words if word.startswith("$SITE"))
    path = address.removeprefix("$SITE").partition("?")[0]
    return method, re.sub(r"\$\w+|(?<=/pools/)\w+", "{id}", path)


def test_each_date_of_the_page_is_known() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"(20\d\d-\d\d-\d\d)T", "\n".join(calls()))) == set(DATES), text


def test_each_endpoint_is_on_the_page() -> None:
    assert {endpoint(call) for call in calls()} == set(operations())


@pytest.mark.django_db(transaction=True)
def test_each_call_of_the_page_works(root: APIClient, settings: Settings, tmp_path: Path) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path
    job = create(root)
    runs = [create(root, name=f"run-{number}", schedule="now")["firstExecutionId"] for number in range(3)]
    for run in runs:
        happen(run, EventType.STARTED, worker="w1")
    run, itself, ended = runs
    writer = log_store().writer(UUID(ended), 1)
    writer.write(b"said\n")
    writer.finish()
    happen(ended, EventType.COMPLETED, worker="w1", exit_code=0)
    task = root.post("/api/v1/tasks", {"name": "t", "type": "Script", "command": "true"}, format="json")
    token = root.post("/api/v1/tokens", {"name": "t", "scope": "read"}, format="json")
    purge()
    letter, other = bury(b"nonsense", b"other nonsense")
    authorization = root._credentials["HTTP_AUTHORIZATION"]  # type: ignore[attr-defined]
    with web_server(1) as site:
        names = {
            "SITE": site,
            "TOKEN": authorization.partition(" ")[2],
            "JOB": job["jobId"],
            "WAITING": create(root, name="waits")["firstExecutionId"],
            "RUN": run,
            "ENDED": ended,
            "TASK": task.json()["id"],
            "TOKEN_ID": token.json()["id"],
            "USER_ID": str(User.objects.create_user("former").pk),
            "GROUP_ID": str(Group.objects.create(name="former").pk),
            "PUNCTUAL_EXECUTION_ID": itself,
            "LETTER": letter.id,
            "OTHER_LETTER": other.id,
            "PUNCTUAL_RUN_TOKEN": run_token(settings.SECRET_KEY, UUID(itself), 1),
        }
        for call in calls():
            done = subprocess.run(
                ["sh", "-c", at_this_time(call)],
                env={**os.environ, **names},
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, (call, done.stderr)
