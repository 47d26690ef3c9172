"""An answer that is kept for an Idempotency-Key is for who may still ask for what it says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User

from scheduler_project.kernel.clock import utcnow
from tests.example_body import BODY
from tests.integration.access.conftest import rest_of
from tests.integration.api.conftest import problem_of
from tests.integration.api.test_retries import ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def maker(outsider: User) -> User:
    """He may make one of everything."""
    wanted = ("add_user", "change_user", "add_group", "add_pool", "add_task")
    outsider.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    return outsider


def requests_of(client: Any) -> dict[str, Any]:
    """All that take a key and keep the answer, by their addresses: what is sent."""
    now = utcnow()
    span = {"from": (now - timedelta(days=3)).isoformat(), "to": now.isoformat()}
    job = client.post("/api/v1/jobs", {**BODY, "owner": "web"}, format="json").json()
    run = ended(client, client.post(f"/api/v1/jobs/{job['jobId']}/run").json()["executionId"])
    return {
        "/api/v1/jobs": {**BODY, "owner": "web", "name": "kept"},
        f"/api/v1/jobs/{job['jobId']}/backfill": span,
        run: {},
        "/api/v1/pools": {"name": "kept", "slots": 1},
        "/api/v1/tasks": {"name": "kept", "type": "Script", "command": "true"},
        "/api/v1/users": {"username": "kept"},
        "/api/v1/groups": {"name": "kept"},
    }


def answers(client: Any, asked: dict[str, Any]) -> dict[str, int]:
    """Asked with a key for each address."""
    keys = {path: {"Idempotency-Key": f"kept-{place}"} for place, path in enumerate(asked)}
    return {
        path: client.post(path, body, format="json", headers=keys[path]).status_code
        for path, body in asked.items()
    }


def test_a_kept_answer_needs_the_right_that_a_new_request_needs(maker: User) -> None:
    client = rest_of(maker)
    asked = requests_of(client)
    assert set(answers(client, asked).values()) == {201}
    assert set(answers(client, asked).values()) == {200}
    assert set(answers(rest_of(maker, "read"), asked).values()) == {403}
    maker.user_permissions.clear()
    gone = {path: 403 for path in asked if path.endswith(("pools", "tasks", "users", "groups"))}
    assert {path: status for path, status in answers(client, asked).items() if status != 200} == gone
    maker.groups.remove(Group.objects.get(name="web"))
    assert set(answers(client, asked).values()) == {403, 404}


def test_who_no_longer_gives_rights_is_not_told_what_he_gave(root: User, maker: User) -> None:
    client, body = rest_of(root), {"username": "kept", "isStaff": True}
    headers = {"Idempotency-Key": "kept"}
    assert client.post("/api/v1/users", body, format="json", headers=headers).status_code == 201
    User.objects.filter(pk=root.pk).update(is_superuser=False)
    root.user_permissions.set(maker.user_permissions.all())
    problem_of(client.post("/api/v1/users", body, format="json", headers=headers), 403)
