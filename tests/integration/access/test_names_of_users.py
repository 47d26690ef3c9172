"""What users may be called, and that one who can log in is left: the same in the admin and over REST."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from access.trail.models import ChangeRecord
from tests.integration.access.conftest import browser_of, rest_of
from tests.integration.api.conftest import problem_of

pytestmark = pytest.mark.django_db

USERS = "/api/v1/users"
SECRET = "Zxcv-2026-first"


@pytest.fixture
def ben(root: User) -> User:
    return User.objects.create_user("ben")


@pytest.mark.parametrize(("name", "status"), [("Root", 409), ("manage.py", 400), ("Manage.PY", 400)])
def test_a_name_that_is_another_s_or_stands_for_commands_is_refused(
    root: User, ben: User, name: str, status: int
) -> None:
    client, browser, kept = rest_of(root), browser_of(root), ChangeRecord.objects.count()
    problem_of(client.post(USERS, {"username": name}, format="json"), status)
    problem_of(client.patch(f"{USERS}/{ben.pk}", {"username": name}, format="json"), status)
    form = {"username": name, "is_active": "on", "password1": SECRET, "password2": SECRET}
    for page in ("add", f"{ben.pk}/change"):
        answer = browser.post(f"/admin/auth/user/{page}/", {**form, "usable_password": "true"})
        assert list(answer.context["adminform"].form.errors) == ["username"]
    assert sorted(User.objects.values_list("username", flat=True)) == ["ben", "root"]
    assert ChangeRecord.objects.count() == kept


def test_a_name_that_stays_is_not_asked_about(root: User) -> None:
    """As of two users from a time when nobody asked."""
    client = rest_of(root)
    for name in ("Root", "no name"):
        user = User.objects.create_user(name)
        changed = client.patch(f"{USERS}/{user.pk}", {"firstName": "R"}, format="json")
        assert (changed.status_code, changed.json()["username"]) == (200, name)
    form = {"username": "root", "is_active": "on", "is_staff": "on", "is_superuser": "on", "last_name": "R"}
    assert browser_of(root).post(f"/admin/auth/user/{root.pk}/change/", form).status_code == 302


def test_own_capitals_may_be_changed(root: User, ben: User) -> None:
    assert rest_of(root).patch(f"{USERS}/{ben.pk}", {"username": "Ben"}, format="json").status_code == 200
    form = {"username": "BEN", "is_active": "on"}
    assert browser_of(root).post(f"/admin/auth/user/{ben.pk}/change/", form).status_code == 302
    assert User.objects.get(pk=ben.pk).username == "BEN"


def test_the_last_superuser_who_can_log_in_keeps_his_password(root: User) -> None:
    root.set_password(SECRET)
    root.save()
    other = User.objects.create_superuser("without")  # no password
    browser, page = browser_of(other), f"/admin/auth/user/{root.pk}/password/"
    given = {"usable_password": "false", "unset-password": "1"}
    assert "last active superuser" in browser.post(page, given).content.decode()
    client = rest_of(other)
    problem_of(client.patch(f"{USERS}/{root.pk}", {"password": None}, format="json"), 409)
    problem_of(client.delete(f"{USERS}/{root.pk}"), 409)
    assert User.objects.get(pk=root.pk).check_password(SECRET)
    other.set_password(SECRET)
    other.save()
    assert browser_of(other).post(page, given).status_code == 302
    assert not User.objects.get(pk=root.pk).has_usable_password()
