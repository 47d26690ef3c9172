"""Users and groups are changed by who may edit, in the admin as over REST: permissions alone do not do."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.integration.access.conftest import browser_of, rest_of
from tests.integration.access.routes import admin_routes
from tests.integration.api.conftest import problem_of
from tests.tokens import token_of

pytestmark = pytest.mark.django_db

SECRET = "Zxcv-2026-first"


@pytest.fixture
def clerk(outsider: User) -> User:
    """An editor who has every permission that there is for users and groups."""
    outsider.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    return outsider


@pytest.fixture(params=["viewers", "operators"])
def reader(request: pytest.FixtureRequest, clerk: User) -> User:
    """He has them too, and a role that does not edit."""
    clerk.groups.set([Group.objects.get(name="web"), Group.objects.get(name=request.param)])
    return clerk


@pytest.fixture
def mate(outsider: User) -> User:
    """Of the same team, and a viewer."""
    user = User.objects.create_user("below")
    user.groups.set([Group.objects.get(name="web"), Group.objects.get(name="viewers")])
    return user


def state() -> list[Any]:
    users = User.objects.order_by("pk").values("pk", "username", "password", "groups", "is_active")
    return [*users, *Group.objects.order_by("pk").values("pk", "name", "permissions")]


def body_of(path: str, chosen: int) -> dict[str, Any]:
    """One that each of these pages would take."""
    return {
        "username": "renamed",
        "name": "renamed",
        "is_active": "on",
        "usable_password": "true",
        "password1": SECRET,
        "password2": SECRET,
        "post": "yes",
        "action": "delete_selected",
        "_selected_action": [str(chosen)],
    }


def pages(mate: User, team: Group) -> list[tuple[str, int]]:
    """All pages of users and of groups that may be sent something, with whom they are about."""
    found = []
    for route in admin_routes():
        if route.path.startswith("/admin/auth/") and "history" not in route.path:
            about = mate.pk if route.path.startswith("/admin/auth/user/") else team.pk
            found.append((route.path.format(**dict.fromkeys(route.takes, about)), about))
    return found


def test_who_does_not_edit_changes_no_user_and_no_group_in_the_admin(reader: User, mate: User) -> None:
    team = reader.groups.get(name="web")
    browser, before = browser_of(reader), state()
    answers = {
        path: browser.post(path, body_of(path, about)).status_code for path, about in pages(mate, team)
    }
    assert state() == before
    names = ["user/", "user/add/", f"user/{mate.pk}/change/", f"user/{mate.pk}/delete/", "group/add/"]
    names += [f"user/{mate.pk}/password/", "group/", f"group/{team.pk}/change/", f"group/{team.pk}/delete/"]
    assert {name: answers[f"/admin/auth/{name}"] for name in names} == dict.fromkeys(names, 403)


def test_an_editor_with_the_same_permissions_changes_them_by_these_pages(clerk: User, mate: User) -> None:
    """So the refusals above are for the level."""
    browser, team = browser_of(clerk), clerk.groups.get(name="web")
    for page in (f"user/{mate.pk}/password/", f"user/{mate.pk}/change/", f"user/{mate.pk}/delete/"):
        path = f"/admin/auth/{page}"
        assert browser.post(path, body_of(path, mate.pk)).status_code == 302, page
    for page in ("user/add/", f"group/{team.pk}/change/", f"group/{team.pk}/delete/", "group/add/"):
        path = f"/admin/auth/{page}"
        assert browser.post(path, body_of(path, team.pk)).status_code == 302, page
    assert not User.objects.filter(pk=mate.pk).exists() and User.objects.filter(username="renamed").exists()
    made = Group.objects.exclude(pk=team.pk).get(name="renamed")
    assert clerk in made.user_set.all()  # as over REST: else he could not reach what he has made


def test_who_does_not_edit_changes_no_user_and_no_group_over_rest(reader: User, mate: User) -> None:
    client, team = rest_of(reader), reader.groups.get(name="web")
    before = state()
    for path, name in (("/api/v1/users", "username"), ("/api/v1/groups", "name")):
        one = f"{path}/{mate.pk if name == 'username' else team.pk}"
        assert "right to edit" in problem_of(client.post(path, {name: "new"}, format="json"), 403)["detail"]
        problem_of(client.patch(one, {name: "renamed"}, format="json"), 403)
        problem_of(client.delete(one), 403)
    password = client.patch(f"/api/v1/users/{mate.pk}", {"password": SECRET}, format="json")
    problem_of(password, 403)
    assert state() == before


def test_a_team_that_carries_a_level_is_a_superusers_to_delete(clerk: User) -> None:
    """Its members who have no role would be editors without it."""
    team = clerk.groups.get(name="web")
    team.permissions.add(Permission.objects.get(content_type__app_label="access", codename="view"))
    problem_of(rest_of(clerk).delete(f"/api/v1/groups/{team.pk}"), 403)
    page = f"/admin/auth/group/{team.pk}/delete/"
    assert browser_of(clerk).post(page, {"post": "yes"}).status_code == 403
    assert Group.objects.filter(pk=team.pk).exists()


def test_an_account_that_may_do_more_by_a_group_is_out_of_reach(clerk: User, mate: User) -> None:
    """Here by its role, which somebody has given a permission."""
    path, page = f"/api/v1/users/{mate.pk}", f"/admin/auth/user/{mate.pk}/password/"
    client, browser = rest_of(clerk), browser_of(clerk)
    more = Permission.objects.get(codename="add_pool")
    Group.objects.get(name="viewers").permissions.add(more)
    problem_of(client.patch(path, {"password": SECRET}, format="json"), 403)
    assert browser.post(page, body_of(page, mate.pk)).status_code == 403
    clerk.user_permissions.add(more)
    assert client.patch(path, {"password": SECRET}, format="json").status_code == 200


def test_who_has_a_token_is_deleted_in_the_admin_as_over_rest(root: User, mate: User) -> None:
    token_of(mate, name="of-below")
    page = f"/admin/auth/user/{mate.pk}/delete/"
    assert "of-below" in browser_of(root).get(page).content.decode()  # said before, as what goes with him
    assert browser_of(root).post(page, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=mate.pk).exists()


def test_when_somebody_was_made_and_last_logged_in_is_not_for_changing(root: User, mate: User) -> None:
    forged = {"date_joined_0": "2001-01-01", "last_login_0": "2001-01-01"}
    form = {"username": "below", "is_active": "on", "date_joined_1": "00:00:00", "last_login_1": "00:00:00"}
    assert browser_of(root).post(f"/admin/auth/user/{mate.pk}/change/", form | forged).status_code == 302
    after = User.objects.get(pk=mate.pk)
    assert (after.date_joined, after.last_login) == (mate.date_joined, None)
