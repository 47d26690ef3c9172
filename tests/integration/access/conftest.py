"""Two teams: one with a job, a run, a pool, a token and a member, all called by one word; and another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from access.models import ApiToken
from access.trail.models import ChangeRecord
from executions.store import Store
from jobs.definitions import read_definition
from jobs.models import Job, Task
from jobs.pools import PoolDefinition, create_pool
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY
from tests.tokens import token_of

HIDDEN = "zebrafinch"  # a word that no page has


@dataclass
class Hidden:
    """What is the hidden team's, by the names that addresses have for it and by the models of the admin."""

    member: User
    job: Job
    names: dict[str, str] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)

    def told_by(self, text: str) -> list[str]:
        """What of it is in ``text``."""
        secrets = [HIDDEN, self.names["job_id"], self.names["execution_id"], self.names["token_id"]]
        return [secret for secret in secrets if secret in text]


@pytest.fixture
def root(db: None, store: Store) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def task(db: None) -> Task:
    """Of no team."""
    return Task.objects.create(name="shared", type="Script", command="true")


@pytest.fixture
def hidden(root: User, task: Task) -> Hidden:
    team = Group.objects.create(name=f"{HIDDEN}-team")
    member = User.objects.create_user(f"{HIDDEN}-user", is_staff=True)
    member.groups.add(team)
    body = {**BODY, "owner": team.name, "name": f"{HIDDEN}-job"}
    made = create_job(read_definition(body), member, utcnow())
    pool = create_pool(PoolDefinition(name=f"{HIDDEN}-pool", slots=1, team=team.name), root)
    token_of(member, name=f"{HIDDEN}-token")
    token = ApiToken.objects.get(user=member)
    run = str(made.first_execution_id)
    return Hidden(
        member=member,
        job=made.job,
        names={
            "job_id": str(made.job.id),
            "execution_id": run,
            "name": pool.name,
            "token_id": str(token.id),
            "task_id": str(task.pk),
            "user_id": str(member.pk),
            "group_id": str(team.pk),
        },
        pages={
            "jobs.job": str(made.job.id),
            "executions.execution": run,
            "jobs.pool": str(pool.pk),
            "access.apitoken": str(token.id),
            "trail.changerecord": str(ChangeRecord.objects.get(job_id=made.job.id).pk),
            "auth.user": str(member.pk),
            "auth.group": str(team.pk),
        },
    )


@pytest.fixture
def outsider(hidden: Hidden) -> User:
    """Of the staff, and an editor of another team."""
    user = User.objects.create_user("otto", is_staff=True)
    user.groups.add(Group.objects.create(name="web"), Group.objects.get(name="editors"))
    return user


def rest_of(user: User, scope: str = "edit") -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(user, scope, name=f'{scope} of the test')}")
    return client


def browser_of(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def send(client: APIClient, method: str, address: str, body: Any = None) -> Any:
    call = getattr(client, method)
    return call(address) if method == "get" else call(address, body or {}, format="json")
