"""Nobody makes himself more than he is by way of the admin's own pages of users and groups."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType

from jobs.models import Job
from tests.example_body import BODY
from tests.integration.access.conftest import Hidden, browser_of, rest_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def clerk(outsider: User) -> User:
    """Of the staff, and may manage users and groups."""
    outsider.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    return outsider


def test_staff_without_permission_reach_no_user_and_no_group(outsider: User) -> None:
    browser = browser_of(outsider)
    for page in ("user", "group", "user/add", "group/add", f"user/{outsider.pk}/change"):
        assert browser.get(f"/admin/auth/{page}/").status_code == 403


def test_who_manages_users_gives_himself_nothing(clerk: User, hidden: Hidden) -> None:
    browser = browser_of(clerk)
    given = {
        "username": "otto",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "groups": [hidden.pages["auth.group"]],
        "user_permissions": list(map(str, Permission.objects.values_list("pk", flat=True))),
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "first_name": "Otto",
    }
    before = set(clerk.groups.all()), set(clerk.user_permissions.all())
    assert browser.post(f"/admin/auth/user/{clerk.pk}/change/", given).status_code == 302
    clerk.refresh_from_db()
    assert (clerk.first_name, clerk.is_superuser) == ("Otto", False)
    assert (set(clerk.groups.all()), set(clerk.user_permissions.all())) == before


def test_who_manages_users_takes_over_no_account_that_may_do_more(
    clerk: User, hidden: Hidden, root: User
) -> None:
    browser = browser_of(clerk)
    for user in (root, hidden.member):
        before = user.password
        given = {"password1": "x-long-enough-1", "password2": "x-long-enough-1", "usable_password": "true"}
        assert browser.post(f"/admin/auth/user/{user.pk}/password/", given).status_code == 403
        browser.post(f"/admin/auth/user/{user.pk}/change/", {"username": "other"})
        assert browser.post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"}).status_code == 403
        browser.post(
            "/admin/auth/user/",
            {"action": "delete_selected", "_selected_action": [str(user.pk)], "post": "yes"},
        )
        user.refresh_from_db()
        assert (user.password, user.username != "other") == (before, True)


def test_who_manages_groups_gives_them_no_permissions(clerk: User) -> None:
    browser, team = browser_of(clerk), clerk.groups.get(name="web")
    wanted = str(Permission.objects.get(codename="add_pool").pk)
    browser.post(f"/admin/auth/group/{team.pk}/change/", {"name": "web", "permissions": [wanted]})
    assert not team.permissions.exists()


@pytest.mark.parametrize("active", [True, False])
def test_who_manages_users_takes_over_no_teammate_above_him_nor_a_sleeping_account(
    clerk: User, hidden: Hidden, active: bool
) -> None:
    """Who is no longer active would be active again by the form, and then be what he was."""
    web, viewers = clerk.groups.get(name="web"), Group.objects.get(name="viewers")
    browser = browser_of(clerk)
    reached = {}
    for name, groups in {
        "below": [web, viewers],
        "above": [web],
        "elsewhere": [Group.objects.get(pk=hidden.pages["auth.group"]), viewers],
    }.items():
        other = User.objects.create_user(name, is_active=active)
        other.groups.set(groups)
        if name == "above":
            other.user_permissions.add(Permission.objects.get(codename="add_pool"))
        given = {"password1": "x-long-enough-1", "password2": "x-long-enough-1", "usable_password": "true"}
        reached[name] = browser.post(f"/admin/auth/user/{other.pk}/password/", given).status_code
    assert reached == {"below": 302, "above": 403, "elsewhere": 403}


def test_who_manages_groups_reaches_no_role_and_no_other_team(clerk: User, hidden: Hidden) -> None:
    browser = browser_of(clerk)
    before = list(Group.objects.order_by("pk").values("pk", "name", "permissions"))
    for group in Group.objects.exclude(name="web"):
        path, pk = f"/admin/auth/group/{group.pk}", str(group.pk)
        assert browser.post(f"{path}/change/", {"name": "x", "permissions": []}).status_code == 403
        assert browser.post(f"{path}/delete/", {"post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [pk], "post": "yes"}
        browser.post("/admin/auth/group/", chosen)
    assert list(Group.objects.order_by("pk").values("pk", "name", "permissions")) == before


def test_a_role_owns_no_job(root: User) -> None:
    answer = rest_of(root).post("/api/v1/jobs", {**BODY, "owner": "operators"}, format="json")
    assert answer.status_code == 400
    assert "is a role and owns no jobs" in answer.json()["errors"]["owner"][0]
    page = browser_of(root).get("/admin/jobs/job/add/")
    owners = page.context["adminform"].form.fields["owner"].queryset
    assert not owners.filter(name__in=["viewers", "operators", "editors"]).exists()
    assert Group.objects.filter(name="operators").exists() and not Job.objects.exists()


def test_nothing_is_looked_for_by_its_content_type(outsider: User) -> None:
    """Django's own page of that kind fails at a model without a table, and for one without an address."""
    browser = browser_of(outsider)
    for kind in ContentType.objects.all():
        assert browser.get(f"/admin/r/{kind.pk}/{outsider.pk}/").status_code == 404, kind
    assert browser.get("/admin/r/x/y/z/").status_code == 404
