"""Users and groups over REST: as in the admin, and nobody makes himself more than he is."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from rest_framework.test import APIClient

from access.masking import HIDDEN as MASKED
from access.trail.models import ChangeRecord
from executions.api.models import KeptAnswer
from tests.integration.access.conftest import HIDDEN, Hidden, browser_of, rest_of
from tests.integration.api.conftest import create, problem_of

pytestmark = pytest.mark.django_db

USERS, GROUPS = "/api/v1/users", "/api/v1/groups"
SECRET, OTHER_SECRET = "Zxcv-2026-first", "Zxcv-2026-second"


@pytest.fixture
def admin(root: User) -> APIClient:
    return rest_of(root)


@pytest.fixture
def clerk(outsider: User) -> APIClient:
    """He may manage users and groups, and is no superuser."""
    outsider.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    return rest_of(outsider)


def post(client: APIClient, path: str, key: str = "", **body: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(path, body, format="json", headers=headers)


def patch(client: APIClient, path: str, tag: str | None = None, **body: Any) -> Any:
    return client.patch(path, body, format="json", headers={} if tag is None else {"If-Match": tag})


def path_of(user: User) -> str:
    return f"{USERS}/{user.pk}"


def names(answer: Any, of: str) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [each[of] for each in answer.json()["results"]]


# --- what a superuser does -------------------------------------------------------------------------


def test_a_user_is_made_with_a_team_and_a_role_logs_in_and_works(admin: APIClient) -> None:
    made = post(admin, GROUPS, name="sales")
    assert (made.status_code, made.json()["kind"], made.json()["level"]) == (201, "team", None)
    body = {"username": "ben", "firstName": "Ben", "email": "ben@example.org", "password": SECRET}
    answer = post(admin, USERS, **body, groups=["sales", "operators"], isStaff=True)
    assert answer.status_code == 201, answer.content
    shown = admin.get(answer["Location"]).json()
    assert answer.json() == shown
    assert (shown["groups"], shown["isStaff"], shown["hasPassword"]) == (["operators", "sales"], True, True)
    ben = User.objects.get(username="ben")
    assert ben.check_password(SECRET)
    create(admin, owner="sales", name="nightly")
    client = rest_of(ben)
    assert names(client.get("/api/v1/jobs"), "name") == ["nightly"]
    job = client.get("/api/v1/jobs").json()["results"][0]["id"]
    assert client.post(f"/api/v1/jobs/{job}/pause").status_code == 200
    problem_of(client.delete(f"/api/v1/jobs/{job}"), 403)


def test_a_user_who_is_deactivated_may_do_nothing_until_he_is_active_again(admin: APIClient) -> None:
    ben = User.objects.create_user("ben")
    client = rest_of(ben)
    assert client.get(USERS).status_code == 200
    assert patch(admin, path_of(ben), isActive=False).json()["isActive"] is False
    problem_of(client.get(USERS), 401)
    assert patch(admin, path_of(ben), isActive=True).status_code == 200
    assert client.get(USERS).status_code == 200


def test_a_patch_changes_what_it_names_and_a_second_editor_is_told(admin: APIClient) -> None:
    Group.objects.create(name="sales")
    ben = User.objects.create_user("ben", first_name="Ben")
    seen = admin.get(path_of(ben))["ETag"]
    changed = patch(admin, path_of(ben), seen, groups=["sales", "viewers"], permissions=["jobs.add_pool"])
    assert changed.json()["groups"] == ["sales", "viewers"]
    assert changed.json()["permissions"] == ["jobs.add_pool"]
    assert changed.json()["firstName"] == "Ben"
    problem_of(patch(admin, path_of(ben), seen, lastName="X"), 412)
    again = patch(admin, path_of(ben), changed["ETag"], groups=["sales"])
    assert again.json()["groups"] == ["sales"]
    assert set(ben.groups.values_list("name", flat=True)) == {"sales"}


def test_groups_are_renamed_and_deleted_and_one_that_owns_jobs_stays(admin: APIClient) -> None:
    path = post(admin, GROUPS, name="sales", permissions=["jobs.add_pool"])["Location"]
    seen = admin.get(path)["ETag"]
    changed = patch(admin, path, seen, name="sales-eu", permissions=[])
    assert (changed.json()["name"], changed.json()["permissions"]) == ("sales-eu", [])
    problem_of(patch(admin, path, seen, name="x"), 412)
    problem_of(patch(admin, path, name="viewers"), 409)
    create(admin, owner="sales-eu", name="nightly")
    assert "owns jobs" in problem_of(admin.delete(path), 409)["detail"]
    other = post(admin, GROUPS, name="empty")["Location"]
    assert admin.delete(other).status_code == 204
    problem_of(admin.get(other), 404)


def test_who_is_deleted_is_gone_and_his_tokens_count_no_more(admin: APIClient) -> None:
    ben = User.objects.create_user("ben")
    client = rest_of(ben)
    assert admin.delete(path_of(ben)).status_code == 204
    problem_of(client.get(USERS), 401)
    problem_of(admin.get(path_of(ben)), 404)
    problem_of(admin.delete(path_of(ben)), 404)


def test_lists_are_pages_with_filters(admin: APIClient) -> None:
    team = Group.objects.create(name="sales")
    for name in ("ada", "ben", "cid", "dan"):
        User.objects.create_user(name, email=f"{name}@example.org", is_staff=name == "dan").groups.add(team)
    User.objects.filter(username="cid").update(is_active=False)
    assert names(admin.get(USERS, {"group": "sales"}), "username") == ["ada", "ben", "cid", "dan"]
    assert names(admin.get(USERS, {"isActive": "false"}), "username") == ["cid"]
    assert names(admin.get(USERS, {"isStaff": "true"}), "username") == ["dan", "root"]
    assert names(admin.get(USERS, {"isSuperuser": "true"}), "username") == ["root"]
    assert names(admin.get(USERS, {"search": "BEN@"}), "username") == ["ben"]
    assert names(admin.get(USERS, {"username": "ada"}), "username") == ["ada"]
    assert admin.get(f"{USERS}?username=ada&fields=id,username").json()["results"] == [
        {"id": User.objects.get(username="ada").pk, "username": "ada"}
    ]
    first = admin.get(USERS, {"limit": "3", "group": "sales"}).json()
    assert [user["username"] for user in first["results"]] == ["ada", "ben", "cid"]
    then = admin.get(first["next"]).json()
    assert ([user["username"] for user in then["results"]], then["next"]) == (["dan"], None)
    assert names(admin.get(GROUPS, {"kind": "role"}), "name") == ["editors", "operators", "viewers"]
    assert names(admin.get(GROUPS, {"kind": "team"}), "name") == ["sales"]
    assert names(admin.get(GROUPS, {"search": "SAL"}), "name") == ["sales"]
    page = admin.get(GROUPS, {"limit": 2}).json()
    assert [group["name"] for group in page["results"]] == ["editors", "operators"]
    assert names(admin.get(page["next"]), "name") == ["sales", "viewers"]
    problem_of(admin.get(USERS, {"isActive": "maybe"}), 400)
    problem_of(admin.get(GROUPS, {"kind": "club"}), 400)


def test_a_key_makes_one_user_and_one_group(admin: APIClient) -> None:
    for path, body in ((USERS, {"username": "ben", "password": SECRET}), (GROUPS, {"name": "sales"})):
        first, again = (post(admin, path, key=f"of-{path}", **body) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json()
        other = {"username": "cid"} if path == USERS else {"name": "other"}
        problem_of(post(admin, path, key=f"of-{path}", **other), 409)
    problem_of(post(admin, USERS, username="BEN"), 409)
    problem_of(post(admin, GROUPS, name="sales"), 409)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (USERS, {}, "username"),
        (USERS, {"username": "a b"}, "username"),
        (USERS, {"username": "x" * 151}, "username"),
        (USERS, {"username": "ben", "email": "no address"}, "email"),
        (USERS, {"username": "ben", "firstName": "a\0b"}, "firstName"),
        (USERS, {"username": "ben", "isActive": "yes"}, "isActive"),
        (USERS, {"username": "ben", "groups": ["nobodys"]}, "groups"),
        (USERS, {"username": "ben", "groups": ["viewers", "viewers"]}, "groups"),
        (USERS, {"username": "ben", "permissions": ["jobs.fly"]}, "permissions"),
        (USERS, {"username": "ben", "permissions": ["fly\0"]}, "permissions"),
        (USERS, {"username": "ben", "teams": []}, "teams"),
        (USERS, {"username": "benjamin", "password": "benjamin1"}, "password"),
        (USERS, {"username": "ben", "password": "short"}, "password"),
        (USERS, {"username": "ben", "password": "password123"}, "password"),
        (USERS, {"username": "ben", "password": 5}, "password"),
        (GROUPS, {"name": " x "}, "name"),
        (GROUPS, {"name": ""}, "name"),
        (GROUPS, {"name": "sales", "permissions": "all"}, "permissions"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(
    admin: APIClient, path: str, body: dict[str, Any], field: str
) -> None:
    before = User.objects.count(), Group.objects.count()
    assert list(problem_of(post(admin, path, **body), 400)["errors"]) == [field]
    assert (User.objects.count(), Group.objects.count()) == before


# --- passwords and the trail -----------------------------------------------------------------------


def test_a_password_is_nowhere_but_in_its_hash(admin: APIClient) -> None:
    answers = [post(admin, USERS, key="ben", username="ben", password=SECRET)]
    ben = User.objects.get(username="ben")
    first = ben.password
    answers.append(patch(admin, path_of(ben), password=OTHER_SECRET))
    ben.refresh_from_db()
    assert ben.check_password(OTHER_SECRET)
    answers += [admin.get(path_of(ben)), admin.get(USERS), patch(admin, path_of(ben), password=5)]
    answers.append(post(admin, USERS, username="cid", password=SECRET[:7]))
    told = "".join(answer.content.decode() for answer in answers)
    kept = json.dumps([*ChangeRecord.objects.values(), *KeptAnswer.objects.values()], default=str)
    hidden = (SECRET, OTHER_SECRET, first, ben.password, SECRET[:7])
    assert [each for each in hidden if each in told or each in kept] == []


def test_a_password_of_none_lets_nobody_log_in_and_leaves_tokens(admin: APIClient) -> None:
    ben = User.objects.create_user("ben", password=SECRET)
    client = rest_of(ben)
    assert patch(admin, path_of(ben), password=None).json()["hasPassword"] is False
    ben.refresh_from_db()
    assert not ben.check_password(SECRET)
    assert client.get(USERS).status_code == 200


def test_every_change_is_on_record_with_who_and_how(admin: APIClient) -> None:
    path = post(admin, USERS, username="ben", password=SECRET)["Location"]
    patch(admin, path, groups=["viewers"])
    patch(admin, path, isActive=False)
    patch(admin, path, password=OTHER_SECRET)
    group = post(admin, GROUPS, name="sales")["Location"]
    patch(admin, group, name="sales-eu")
    admin.delete(group)
    admin.delete(path)

    def of_kind(model: str, name: str) -> list[tuple[str, Any]]:
        records = ChangeRecord.objects.filter(content_type__model=model, object_repr__in=[name, "sales-eu"])
        assert {record.who for record in records} == {"root"}
        assert {record.remote_addr for record in records} == {"127.0.0.1"}
        return [(record.what, record.changes) for record in records.order_by("id")]

    created, grouped, deactivated, password, deleted = of_kind("user", "ben")
    assert (created[0], created[1]["username"][1]) == ("created", "ben")
    assert grouped == (
        "changed",
        {"groups": {"type": "m2m", "operation": "add", "objects": ["viewers"]}},
    )
    assert deactivated[1]["is_active"] == [True, False]
    assert password == ("changed", {"password": [MASKED, MASKED]})
    assert deleted[0] == "deleted"
    assert [what for what, _ in of_kind("group", "sales")] == ["created", "changed", "deleted"]


# --- the last superuser ----------------------------------------------------------------------------


def test_the_last_active_superuser_stays_one(root: User, admin: APIClient) -> None:
    User.objects.create_superuser("asleep", is_active=False)
    root.set_password(SECRET)
    root.save()
    for change in ({"isActive": False}, {"isSuperuser": False}, {"password": None}):
        refused = problem_of(patch(admin, path_of(root), **change), 409)
        assert "last active superuser" in refused["detail"]
    problem_of(admin.delete(path_of(root)), 409)
    root.refresh_from_db()
    assert (root.is_active, root.is_superuser, root.check_password(SECRET)) == (True, True, True)
    second = User.objects.create_superuser("second")
    problem_of(patch(admin, path_of(root), isSuperuser=False), 409)  # who has no password does not log in
    second.set_password(SECRET)
    second.save()
    assert patch(admin, path_of(root), isSuperuser=False).status_code == 200
    problem_of(patch(rest_of(second), path_of(second), isActive=False), 409)


def test_the_last_active_superuser_stays_one_in_the_admin_too(root: User) -> None:
    browser = browser_of(root)
    page = f"/admin/auth/user/{root.pk}"
    form = {"username": "root", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    for kept in ("is_active", "is_superuser"):
        answer = browser.post(f"{page}/change/", {**form, "is_staff": "on", kept: "on"})
        assert "last active superuser" in answer.content.decode()
    assert browser.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    second = User.objects.create_superuser("second")
    both = {"action": "delete_selected", "_selected_action": [root.pk, second.pk], "post": "yes"}
    assert browser.post("/admin/auth/user/", both).status_code == 403
    assert User.objects.filter(is_active=True, is_superuser=True).count() == 2
    assert browser.post(f"/admin/auth/user/{second.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=second.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_two_superusers_who_depose_each_other_at_once_leave_one(store: Any) -> None:
    users = [User.objects.create_superuser(name) for name in ("ada", "ben")]
    clients = [rest_of(user) for user in users]
    together, answers = threading.Barrier(2), []

    def depose(client: APIClient, other: User) -> None:
        try:
            together.wait(10)
            answers.append(patch(client, path_of(other), isSuperuser=False).status_code)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=depose, args=each) for each in zip(clients, reversed(users), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # Who was deposed before the question arrived may not ask it, or does not see the other any more.
    assert answers.count(200) == 1 and set(answers) <= {200, 403, 404, 409}
    assert User.objects.filter(is_active=True, is_superuser=True).count() == 1


# --- who is no superuser ---------------------------------------------------------------------------


def test_who_may_look_at_nothing_sees_himself_his_teams_and_the_roles(hidden: Hidden, outsider: User) -> None:
    client = rest_of(outsider)
    assert names(client.get(USERS), "username") == ["otto"]
    assert names(client.get(GROUPS), "name") == ["editors", "operators", "viewers", "web"]
    assert client.get(path_of(outsider)).json()["groups"] == ["editors", "web"]
    problem_of(patch(client, path_of(outsider), firstName="O"), 403)


def test_who_manages_users_gives_nobody_rights(clerk: APIClient, outsider: User) -> None:
    before = outsider.password, set(outsider.groups.all()), set(outsider.user_permissions.all())
    wanted: list[dict[str, Any]] = [
        {"isStaff": False},
        {"isSuperuser": True},
        {"groups": ["editors", "web", f"{HIDDEN}-team"]},
        {"groups": []},
        {"permissions": ["jobs.add_pool"]},
    ]
    for rights in wanted:
        refused = problem_of(patch(clerk, path_of(outsider), **rights), 403)
        assert "Only superusers change the rights" in refused["detail"]
        problem_of(post(clerk, USERS, username="new", isStaff=True), 403)
    same = patch(clerk, path_of(outsider), groups=["web", "editors"], isStaff=True, firstName="Otto")
    assert (same.status_code, same.json()["firstName"]) == (200, "Otto")
    outsider.refresh_from_db()
    assert (outsider.password, set(outsider.groups.all()), set(outsider.user_permissions.all())) == before
    made = post(clerk, USERS, username="new", password=SECRET)
    assert (made.status_code, made.json()["groups"]) == (201, [])


def test_who_may_look_at_users_learns_no_names_of_teams_that_he_may_not_see(
    outsider: User, hidden: Hidden
) -> None:
    hidden.member.groups.add(Group.objects.get(name="web"))
    whole = list(hidden.member.groups.order_by("name").values_list("name", flat=True))
    seen = [name for name in whole if HIDDEN not in name]
    assert len(seen) < len(whole)
    outsider.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
    client, root = rest_of(outsider), rest_of(User.objects.get(username="root"))
    team = f"{HIDDEN}-team"
    shown = client.get(path_of(hidden.member))
    assert shown.json()["groups"] == seen
    groups_of = {each["username"]: each["groups"] for each in client.get(USERS).json()["results"]}
    assert groups_of[hidden.member.username] == seen
    assert names(client.get(USERS, {"group": team}), "username") == []
    assert names(client.get(USERS, {"group": "web"}), "username") != []
    assert hidden.member.username in names(root.get(USERS, {"group": team}), "username")
    for guess in (whole, seen, []):
        problem_of(patch(client, path_of(hidden.member), groups=guess), 403)
    hidden.member.groups.remove(Group.objects.get(name=team))
    assert client.get(path_of(hidden.member))["ETag"] == shown["ETag"], "it would tell who guesses"


def test_the_admin_shows_of_a_users_teams_those_that_one_may_see(outsider: User, hidden: Hidden) -> None:
    hidden.member.groups.add(Group.objects.get(name="web"))
    team = Group.objects.get(name=f"{HIDDEN}-team")
    User.objects.filter(pk=hidden.member.pk).update(username="mo", email="", first_name="", last_name="")
    outsider.user_permissions.set(Permission.objects.filter(codename__in=["view_user"]))
    browser = browser_of(outsider)
    page = f"/admin/auth/user/{hidden.member.pk}/change/"
    shown = browser.get(page)
    assert shown.status_code == 200
    assert "web" in shown.content.decode()
    assert HIDDEN not in shown.content.decode()
    listed = browser.get("/admin/auth/user/")
    assert "mo" in listed.content.decode()
    assert HIDDEN not in listed.content.decode()
    for asked in ("groups__id__exact", "groups__name", "groups__in", "groups"):
        assert browser.get("/admin/auth/user/", {asked: team.pk}).status_code == 400
    root = browser_of(User.objects.get(username="root"))
    assert team.name in root.get(page).content.decode()
    assert root.get("/admin/auth/user/", {"groups__id__exact": team.pk}).status_code == 200


def test_who_manages_users_reaches_no_account_that_may_do_more(
    clerk: APIClient, root: User, hidden: Hidden
) -> None:
    web = Group.objects.get(name="web")
    above, below = User.objects.create_user("above", is_active=False), User.objects.create_user("below")
    above.user_permissions.add(Permission.objects.get(codename="add_pool"))
    below.groups.add(web)
    for other in (root, hidden.member, above):
        problem_of(patch(clerk, path_of(other), password=SECRET), 403)
        problem_of(patch(clerk, path_of(other), isActive=True), 403)
        problem_of(clerk.delete(path_of(other)), 403)
    assert patch(clerk, path_of(below), password=SECRET).status_code == 200
    assert clerk.delete(path_of(below)).status_code == 204


def test_who_manages_groups_reaches_his_own_teams_alone(clerk: APIClient, hidden: Hidden) -> None:
    before = list(Group.objects.exclude(name="web").order_by("pk").values("pk", "name", "permissions"))
    for group in Group.objects.exclude(name="web"):
        problem_of(patch(clerk, f"{GROUPS}/{group.pk}", name="x"), 403)
        problem_of(clerk.delete(f"{GROUPS}/{group.pk}"), 403)
    web = f"{GROUPS}/{Group.objects.get(name='web').pk}"
    problem_of(patch(clerk, web, permissions=["jobs.add_pool"]), 403)
    problem_of(post(clerk, GROUPS, name="mine", permissions=["jobs.add_pool"]), 403)
    assert (
        list(Group.objects.exclude(name="web").order_by("pk").values("pk", "name", "permissions")) == before
    )
    assert patch(clerk, web, name="web-eu").status_code == 200
    mine = post(clerk, GROUPS, name="mine")
    assert mine.status_code == 201
    assert patch(clerk, mine["Location"], name="mine-eu").status_code == 200


def test_who_manages_groups_makes_no_role_that_was_deleted(clerk: APIClient, outsider: User) -> None:
    Group.objects.get(name="viewers").delete()
    problem_of(post(clerk, GROUPS, name="viewers"), 403)
    web = f"{GROUPS}/{Group.objects.get(name='web').pk}"
    problem_of(patch(clerk, web, name="viewers"), 403)
    assert not Group.objects.filter(name="viewers").exists()


@pytest.mark.parametrize("scope", ["read", "operate"])
def test_a_token_that_does_not_edit_changes_no_user(root: User, scope: str) -> None:
    client = rest_of(root, scope)
    assert client.get(USERS).status_code == 200
    problem_of(post(client, USERS, username="ben"), 403)
    problem_of(patch(client, path_of(root), firstName="R"), 403)
