"""Commands as they are called from a shell, within this process and its transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from executions.log_places import log_store
from executions.models import Execution
from executions.store import Store
from jobs.definitions import read_definition
from jobs.models import Job
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY


@dataclass(frozen=True)
class Said:
    """How a command ended: its exit status, its output and its errors."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Screen(StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


Manage = Callable[..., Said]


def write_log(run: Execution, attempt: int, *pieces: bytes) -> None:
    """The whole output of an attempt, as its worker leaves it."""
    writer = log_store().writer(run.id, attempt)
    for piece in pieces:
        writer.write(piece)
    writer.finish()


@pytest.fixture
def manage(db: None, store: Store) -> Manage:
    """``manage("jobs", "list")``; ``terminal``: its output is shown on one."""

    def run(*words: str, terminal: bool = False) -> Said:
        out, err = (Screen() if terminal else StringIO()), StringIO()
        code = 0
        try:
            call_command(*words, stdout=out, stderr=err)
        except CommandError as error:
            code = error.returncode
            err.write(f"{error}\n")
        except SystemExit as end:
            code = int(end.code or 0)
        return Said(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_user("root", is_superuser=True)


@pytest.fixture
def new_job(db: None, store: Store, root: User) -> Callable[..., Job]:
    """A job of ``owner``, which is made; other fields as in REST."""

    def make(name: str = "nightly", owner: str = "ops", **fields: Any) -> Job:
        Group.objects.get_or_create(name=owner)
        return create_job(
            read_definition({**BODY, "name": name, "owner": owner, **fields}), root, utcnow()
        ).job

    return make


@pytest.fixture
def member_of(db: None) -> Callable[..., User]:
    def make(name: str, *teams: str, **fields: Any) -> User:
        user = User.objects.create_user(name, **fields)
        user.groups.set([Group.objects.get_or_create(name=team)[0] for team in teams])
        return user

    return make
