"""No team is called like a role, whichever way it is made or renamed."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User

from jobs.models import Job
from tests.example_body import BODY
from tests.integration.access.conftest import browser_of, rest_of
from tests.integration.api.conftest import problem_of

pytestmark = pytest.mark.django_db


def test_no_team_has_the_name_of_a_role_in_other_capitals(root: User) -> None:
    web = Group.objects.create(name="web")
    client, browser = rest_of(root), browser_of(root)
    for answer in (
        client.post("/api/v1/groups", {"name": "Editors"}, format="json"),
        client.patch(f"/api/v1/groups/{web.pk}", {"name": "VIEWERS"}, format="json"),
    ):
        assert "would be taken for the role" in problem_of(answer, 400)["errors"]["name"][0]
    owner = client.post("/api/v1/jobs", {**BODY, "owner": "Editors"}, format="json")
    assert "would be taken for the role" in problem_of(owner, 400)["errors"]["owner"][0]
    for page in ("add", f"{web.pk}/change"):
        refused = browser.post(f"/admin/auth/group/{page}/", {"name": "Operators"})
        assert list(refused.context["adminform"].form.errors) == ["name"]
    names = Group.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["editors", "operators", "viewers", "web"]


def test_a_team_that_has_such_a_name_already_works_on(root: User) -> None:
    old = Group.objects.create(name="Editors")
    client = rest_of(root)
    assert client.post("/api/v1/jobs", {**BODY, "owner": "Editors"}, format="json").status_code == 201
    assert Job.objects.get().owner == old
    change = {"permissions": ["jobs.add_pool"]}
    assert client.patch(f"/api/v1/groups/{old.pk}", change, format="json").status_code == 200
    page = f"/admin/auth/group/{old.pk}/change/"
    assert browser_of(root).post(page, {"name": "Editors"}).status_code == 302


def test_who_manages_groups_makes_no_role_in_the_admin(outsider: User) -> None:
    outsider.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    Group.objects.get(name="viewers").delete()
    web, browser = outsider.groups.get(name="web"), browser_of(outsider)
    for page in ("add", f"{web.pk}/change"):
        refused = browser.post(f"/admin/auth/group/{page}/", {"name": "viewers"})
        assert "only superusers make it" in refused.content.decode()
    assert not Group.objects.filter(name="viewers").exists()
