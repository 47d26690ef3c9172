"""Every address of the URLconf, across teams and by level. A new one fails until it is said what it needs.

Across teams a page or an endpoint answers 403 or 404 about what is another team's, and lists nothing of it;
where the body names the team, that is a 400, as for a team that does not exist (test_names_of_others.py).
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import override_settings

from access.levels import Level
from jobs.models import Job, Task
from tests.example_body import BODY
from tests.integration.access.conftest import HIDDEN, Hidden, browser_of, rest_of, send
from tests.integration.access.routes import Route, admin_routes, rest_routes

pytestmark = pytest.mark.django_db

SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:01Z", "dryRun": True}
# What an endpoint is sent, where it takes more than nothing; one without an object names the hidden team's.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("job-list", "post"): {**BODY, "owner": f"{HIDDEN}-team", "name": "another"},
    ("job-detail", "patch"): {"description": "x"},
    ("job-backfill", "post"): SPAN,
    ("pool-list", "post"): {"name": "another", "slots": 1, "team": f"{HIDDEN}-team"},
    ("pool-detail", "patch"): {"slots": 2},
    ("schedule-preview", "post"): {"schedule": "0 2 * * *", "job": "{job_id}"},
    ("execution-reschedule", "post"): {"at": "2100-01-01T00:00:00Z"},
    ("execution-status", "post"): {"status": "Completed Normally", "completedAt": "2026-01-01T00:00:00Z"},
    ("task-list", "post"): {"name": "another", "type": "Script", "command": "true"},
    ("task-detail", "patch"): {"description": "x"},
    ("token-list", "post"): {"name": "another", "scope": "read", "user": f"{HIDDEN}-user"},
    ("dead-letter-replay", "post"): {"ids": ["0"]},
    ("dead-letter-discard", "post"): {"ids": ["0"]},
    ("user-list", "post"): {"username": "another", "groups": [f"{HIDDEN}-team"]},
    ("user-detail", "patch"): {"firstName": "x"},
    ("group-list", "post"): {"name": "another"},
    ("group-detail", "patch"): {"name": "renamed"},
}
QUERIES = {"calendar-minute": "?at=2100-01-01T02:00:00Z"}
NAMES_THE_TEAM = {"job-list", "pool-list"}  # in the body of a POST
OF_NO_TEAM = {"schema", "swagger", "redoc"}  # the same for everybody, with nothing of anybody's in it
SHARED = {
    "jobs.task",
    "django_celery_results.taskresult",
    "task-detail",
}  # read by all; changed by permission
OF_NOTHING = {"login", "logout", "view_on_site"}  # nothing of ours has a site to be viewed on
OF_ALL_TEAMS = {"dead-letter-list"}  # for who has a permission to look at it
PERMISSION = "permission"  # what belongs to no team needs one of Django's
READING_PERMISSION = "a permission that reading suffices for"
NEEDS: dict[tuple[str, str], Level | str] = {
    ("job-list", "get"): Level.VIEW,
    ("job-list", "post"): Level.EDIT,
    ("job-detail", "get"): Level.VIEW,
    ("job-detail", "patch"): Level.EDIT,
    ("job-detail", "delete"): Level.EDIT,
    ("job-pause", "post"): Level.OPERATE,
    ("job-resume", "post"): Level.OPERATE,
    ("job-run", "post"): Level.OPERATE,
    ("job-backfill", "post"): Level.OPERATE,
    ("job-preview", "get"): Level.VIEW,
    ("job-changes", "get"): Level.VIEW,
    ("job-render", "post"): Level.VIEW,
    ("overview", "get"): Level.VIEW,
    ("calendar", "get"): Level.VIEW,
    ("calendar-minute", "get"): Level.VIEW,
    ("schedule-preview", "post"): Level.VIEW,
    ("pool-list", "get"): Level.VIEW,
    ("pool-list", "post"): PERMISSION,
    ("pool-detail", "get"): Level.VIEW,
    ("pool-detail", "patch"): PERMISSION,
    ("pool-detail", "delete"): PERMISSION,
    ("execution-list", "get"): Level.VIEW,
    ("execution-detail", "get"): Level.VIEW,
    ("execution-events", "get"): Level.VIEW,
    ("execution-why", "get"): Level.VIEW,
    ("execution-logs", "get"): Level.VIEW,
    ("execution-cancel", "post"): Level.OPERATE,
    ("execution-reschedule", "post"): Level.OPERATE,
    ("execution-status", "post"): Level.OPERATE,
    ("execution-retry", "post"): Level.OPERATE,
    ("task-list", "get"): Level.VIEW,
    ("task-list", "post"): PERMISSION,
    ("task-detail", "get"): Level.VIEW,
    ("task-detail", "patch"): PERMISSION,
    ("task-detail", "delete"): PERMISSION,
    ("user-list", "get"): Level.VIEW,
    ("user-list", "post"): PERMISSION,
    ("user-detail", "get"): Level.VIEW,  # of oneself
    ("user-detail", "patch"): PERMISSION,
    ("user-detail", "delete"): PERMISSION,
    ("group-list", "get"): Level.VIEW,
    ("group-list", "post"): PERMISSION,
    ("group-detail", "get"): Level.VIEW,
    ("group-detail", "patch"): PERMISSION,
    ("group-detail", "delete"): PERMISSION,
    ("token-list", "get"): Level.VIEW,
    ("token-list", "post"): Level.VIEW,  # for oneself, of the caller's scope at most
    ("token-detail", "get"): Level.VIEW,
    ("token-detail", "delete"): Level.VIEW,
    ("dead-letter-list", "get"): READING_PERMISSION,
    ("dead-letter-replay", "post"): PERMISSION,
    ("dead-letter-discard", "post"): PERMISSION,
}
UNTHROTTLED = override_settings(PUNCTUAL_API_RATE=1_000_000)


def address_of(route: Route, names: dict[str, str]) -> str:
    """KeyError: Hidden is to have what a new endpoint takes."""
    return route.path.format(**names) + QUERIES.get(route.name, "")


def body_of(route: Route, method: str, names: dict[str, str]) -> dict[str, Any]:
    given = BODIES.get((route.name, method), {})
    return {
        key: value.format(**names) if isinstance(value, str) and value.startswith("{job_id") else value
        for key, value in given.items()
    }


@UNTHROTTLED
def test_no_endpoint_gives_anything_across_teams(hidden: Hidden, outsider: User, root: User) -> None:
    client = rest_of(outsider)
    outsider.user_permissions.set(permissions_of_pools())
    wrong = {}
    for route in rest_routes():
        if route.name in OF_NO_TEAM:
            continue
        address = address_of(route, hidden.names)
        for method in route.methods:
            answer = send(client, method, address, body_of(route, method, hidden.names))
            text = "" if answer.streaming else answer.content.decode()
            if route.name in OF_ALL_TEAMS:
                held = answer.status_code == 403
            elif method != "get" or (route.takes and route.name not in SHARED):
                held = answer.status_code in ((400,) if route.name in NAMES_THE_TEAM else (403, 404))
            else:
                held = answer.status_code == 200 and not hidden.told_by(text)
            if not held:
                wrong[method, address] = answer.status_code, text[:200]
    assert wrong == {}
    assert Job.objects.get(archived_at=None) == hidden.job


@UNTHROTTLED
def test_those_addresses_are_right_the_team_itself_gets_there(hidden: Hidden) -> None:
    client = rest_of(hidden.member)
    got = {
        route.path: send(client, "get", address_of(route, hidden.names))
        for route in rest_routes()
        if "get" in route.methods and route.name not in OF_NO_TEAM
    }
    assert {path: answer for path, answer in got.items() if not reached(answer)} == {}
    assert [path for path, answer in got.items() if answer.status_code == 200]


def test_no_page_of_the_admin_gives_anything_across_teams(hidden: Hidden, outsider: User, task: Task) -> None:
    browser = browser_of(outsider)
    outsider.user_permissions.set(permissions_of_pools())
    wrong = {}
    for route in admin_routes():
        if route.model in SHARED or route.name in OF_NOTHING:
            continue
        if route.takes:
            names = dict.fromkeys(route.takes, hidden.pages.get(route.model, "?"))
            address = route.path.format(**names)
            assert "?" not in address, f"{route}: Hidden is to have a page of {route.model}"
            answers = [browser.get(address, follow=True), browser.post(address, {"post": "yes"}, follow=True)]
            held = all(answer.status_code in (403, 404, 405) for answer in answers)
        else:
            address = route.path
            answers = [browser.get(address, follow=True)]
            held = all(not hidden.told_by(answer.content.decode()) for answer in answers)
        if not held:
            wrong[address] = [answer.status_code for answer in answers]
    assert wrong == {}
    assert Job.objects.get(archived_at=None) == hidden.job


def test_no_action_of_the_admin_reaches_across_teams(hidden: Hidden, outsider: User) -> None:
    browser = browser_of(outsider)
    before = Job.objects.values().get()
    for page in ("jobs/job", "access/apitoken", "jobs/pool", "auth/user", "auth/group"):
        chosen = hidden.pages[page.replace("/", ".")]
        for action in ("run_now", "pause", "resume", "delete_jobs", "revoke", "delete_selected"):
            given = {"action": action, "_selected_action": [chosen], "confirmed": "yes", "post": "yes"}
            answer = browser.post(f"/admin/{page}/", given, follow=True)
            assert not hidden.told_by(answer.content.decode()), (page, action)
    assert Job.objects.values().get() == before
    hidden.member.api_tokens.get(revoked_at=None)


def permissions_of_pools() -> Any:
    """So that what keeps the outsider out is the team, not that he may change no pool at all."""
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(content_type__app_label="jobs", content_type__model="pool")


def reached(answer: Any) -> bool:
    """Whether it got to what it is about; a run that has not begun has no log yet."""
    if answer.status_code == 404:
        return "log" in answer.json()["detail"]
    return answer.status_code not in (401, 500)


# --- by level --------------------------------------------------------------------------------------

ACTORS = {
    "viewers": (Level.VIEW, False),
    "operators": (Level.OPERATE, False),
    "editors": (Level.EDIT, False),
    "read": (Level.VIEW, True),
    "operate": (Level.OPERATE, True),
    "edit": (Level.EDIT, True),
}
"""The roles of members, and the scopes of a superuser's tokens: their level, and if a superuser's."""


@UNTHROTTLED
@pytest.mark.parametrize("actor", ACTORS)
def test_each_endpoint_asks_for_its_level(hidden: Hidden, root: User, actor: str) -> None:
    level, superuser = ACTORS[actor]
    if superuser:
        client, user = rest_of(root, actor), root
    else:
        user = hidden.member
        user.groups.add(Group.objects.get(name=actor))
        client = rest_of(user)
    names = {**hidden.names, "token_id": str(user.api_tokens.get(name__endswith="of the test").id)}
    calls = [(route, method) for route in rest_routes() for method in route.methods]
    wrong = {}
    for route, method in sorted(calls, key=lambda call: (call[1] == "delete", "token" in call[0].name)):
        if route.name in OF_NO_TEAM:
            continue
        needed = NEEDS[route.name, method]  # a KeyError: say what the new endpoint needs
        body = body_of(route, method, names)
        body.pop("user", None)
        answer = send(client, method, address_of(route, names), body)
        if isinstance(needed, Level):
            allowed = level >= needed
        else:
            allowed = superuser and (level is Level.EDIT or needed == READING_PERMISSION)
        if (answer.status_code == 403) is allowed or not reached(answer):
            wrong[method, route.path] = answer.status_code, needed
    assert wrong == {}
    assert len(NEEDS) == len(
        {(route.name, method) for route, method in calls if route.name not in OF_NO_TEAM}
    )
