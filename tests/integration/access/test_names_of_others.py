"""Nobody finds out by asking what other teams have: what is theirs is answered as what does not exist.

Whoever may make something whose name is nobody else's (a pool, a group, a user) learns that a name is taken;
that needs a permission.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from scheduler_project.documentation import schema
from tests.example_body import BODY
from tests.integration.access.conftest import HIDDEN, Hidden, rest_of, send
from tests.integration.api.conftest import create

pytestmark = pytest.mark.django_db

NOBODY = "nobodys-name"
NO_ID = "01990000-0000-7000-8000-000000000000"  # the same in each process: it names a case
SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
# By the place in the schema that takes a name: what is the hidden team's there, and what is sent with a name.
IN_BODIES: dict[str, tuple[str, str, str, Callable[[str], dict[str, Any]]]] = {
    "Job.owner": ("team", "post", "jobs", lambda name: {**BODY, "owner": name}),
    "Job.pool": ("pool", "post", "jobs", lambda name: {**BODY, "owner": "web", "pool": name}),
    "JobChanges.owner": ("team", "patch", "jobs/{own}", lambda name: {"owner": name}),
    "JobChanges.pool": ("pool", "patch", "jobs/{own}", lambda name: {"pool": name}),
    "Pool.team": ("team", "post", "pools", lambda name: {"name": "another", "slots": 1, "team": name}),
    "User.groups": ("team", "post", "users", lambda name: {"username": "another", "groups": [name]}),
    "UserChanges.groups": ("team", "patch", "users/{me}", lambda name: {"groups": [name]}),
    "Token.user": ("user", "post", "tokens", lambda name: {"name": "x", "scope": "read", "user": name}),
}
IN_QUERIES = {
    "/api/v1/jobs?owner": "team",
    "/api/v1/jobs?name": "job",
    "/api/v1/jobs?pool": "pool",
    "/api/v1/executions?owner": "team",
    "/api/v1/users?username": "user",
    "/api/v1/users?group": "team",
    "/api/v1/groups?name": "team",
}
OF_THE_POOL = {"PoolChanges.team"}  # which is named in the address: what it says is never looked up
SHARED = {"Job.task", "JobChanges.task", "/api/v1/jobs?task", "/api/v1/tasks?name"}  # everybody reads tasks
NAMING = {"owner", "pool", "team", "user", "task", "group", "groups", "job"}
COMMANDS = {
    "team": (
        ["executions", "list", "--owner"],
        ["jobs", "list", "--owner"],
    ),
    "job": (["jobs", "show"], ["jobs", "list", "--name"], ["executions", "list", "--job"], ["preview"]),
    "user": (["tokens", "create", "x", "--for"],),
}


def test_each_field_that_names_something_of_a_team_is_below() -> None:
    made = schema()
    bodies = {
        content["schema"]["$ref"].rpartition("/")[2]
        for methods in made["paths"].values()
        for said in methods.values()
        for content in said.get("requestBody", {}).get("content", {}).values()
    }
    fields = {
        f"{body}.{name}"
        for body in bodies
        for name, field in made["components"]["schemas"][body]["properties"].items()
        if name in NAMING and field.get("format") != "uuid"
    }
    queries = {
        f"{path}?{parameter['name']}"
        for path, methods in made["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", [])
        if parameter["in"] == "query" and parameter["name"] in {*NAMING, "name", "username"}
        if parameter["schema"].get("format") != "uuid"
    }
    assert fields - SHARED - OF_THE_POOL == set(IN_BODIES)
    assert queries - SHARED == set(IN_QUERIES)


@pytest.fixture
def clerk(outsider: User) -> APIClient:
    """He may make pools, so that only the team keeps him from it."""
    outsider.user_permissions.set(Permission.objects.filter(content_type__model="pool"))
    return rest_of(outsider)


def told(answer: Any, name: str) -> tuple[int, str]:
    return answer.status_code, answer.content.decode().replace(name, "NAME")


@pytest.mark.parametrize("field", IN_BODIES)
@pytest.mark.parametrize("permitted", [True, False])
def test_a_foreign_name_in_a_body_is_as_one_of_nothing(
    hidden: Hidden, clerk: APIClient, outsider: User, field: str, permitted: bool
) -> None:
    if not permitted:
        outsider.user_permissions.clear()
    kind, method, path, body = IN_BODIES[field]
    own = create(clerk, owner="web", name="own")["jobId"]
    address = "/api/v1/" + path.format(own=own, me=outsider.pk)
    names = (f"{HIDDEN}-{kind}", NOBODY)
    foreign, nothing = (told(send(clerk, method, address, body(name)), name) for name in names)
    assert foreign == nothing
    assert foreign[0] in (400, 403)


@pytest.mark.parametrize("place", IN_QUERIES)
def test_a_foreign_name_in_a_query_is_as_one_of_nothing(hidden: Hidden, clerk: APIClient, place: str) -> None:
    names = (f"{HIDDEN}-{IN_QUERIES[place]}", NOBODY)
    foreign, nothing = (told(send(clerk, "get", f"{place}={name}"), name) for name in names)
    assert foreign == nothing == (200, '{"results":[],"next":null}')


@pytest.mark.parametrize(
    ("named", "path", "other"),
    [
        ("job_id", "jobs", NO_ID),
        ("execution_id", "executions", NO_ID),
        ("token_id", "tokens", NO_ID),
        ("name", "pools", NOBODY),
        ("user_id", "users", "1234567890"),
        ("group_id", "groups", "1234567890"),
    ],
)
@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_a_foreign_name_in_an_address_is_as_one_of_nothing(
    hidden: Hidden, clerk: APIClient, named: str, path: str, other: str, method: str
) -> None:
    names = (hidden.names[named], other)
    foreign, nothing = (told(send(clerk, method, f"/api/v1/{path}/{name}"), name) for name in names)
    assert foreign == nothing
    assert foreign[0] in (404, 405)


@pytest.mark.parametrize(
    ("kind", "words"), [(kind, words) for kind, all_words in COMMANDS.items() for words in all_words]
)
def test_a_foreign_name_for_a_command_is_as_one_of_nothing(
    hidden: Hidden, outsider: User, capsys: pytest.CaptureFixture[str], kind: str, words: list[str]
) -> None:
    def said(name: str) -> tuple[int, str]:
        code, error = 0, ""
        try:
            call_command(*words, name, "--user", outsider.username)
        except CommandError as refusal:
            code, error = refusal.returncode, str(refusal)
        return code, (error + capsys.readouterr().out).replace(name, "NAME")

    assert said(f"{HIDDEN}-{kind}") == said(NOBODY)
