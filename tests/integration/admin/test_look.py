"""The admin's frame: the sidebar, what lies over unfold's own templates, what every page loads."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
import unfold
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from tests.integration.admin.conftest import Browser

OURS = Path("scheduler_project/templates")
THEIRS = Path(unfold.__file__).parent / "templates"
# What ours were made from: when one of these has changed, look at both, and write the new digest.
MADE_FROM = {
    "admin/base.html": "2ce9250b3c649e3a",
    "admin/change_list.html": "5885c39760f6085d",
    "unfold/helpers/navigation_header.html": "35139b9d94580be9",
    "unfold/helpers/navigation_user.html": "4c9ba58b3f215326",
    "unfold/helpers/theme_switch.html": "c8e659df65f5aa78",
    "unfold/helpers/theme_switch_dropdown.html": "90421e9a3524b57f",
    "unfold/helpers/userlinks.html": "b493fa5ca3595d28",
    "unfold/helpers/welcomemsg.html": "e8eab02522ba2319",
    "unfold/layouts/unauthenticated.html": "768501529f1a8dae",
}

pytestmark = pytest.mark.django_db


def test_what_lies_over_unfolds_templates_was_made_from_those_that_are_installed() -> None:
    over = {
        path.relative_to(OURS).as_posix()
        for path in OURS.rglob("*.html")
        if (THEIRS / path.relative_to(OURS)).exists()
    }
    found = {name: sha256((THEIRS / name).read_bytes()).hexdigest()[:16] for name in sorted(over)}
    assert found == MADE_FROM


def test_the_sidebar_leads_to_what_one_may_open(browser_of: Browser) -> None:
    def links(browser: Client) -> list[str]:
        groups = browser.get("/admin/").context["sidebar_navigation"]
        return [item["title"] for group in groups for item in group["items"]]

    assert {"Jobs", "Runs", "Tasks", "Pools", "Users"} <= set(links(browser_of("root", is_superuser=True)))
    assert "Users" not in links(browser_of("mia", "data-engineering"))


def test_every_page_has_its_styles_and_the_times_of_the_viewer(browser_of: Browser) -> None:
    page = browser_of("root", is_superuser=True).get("/admin/").content.decode()
    for file in ("punctual/admin.css", "punctual/local-times.js", "punctual/icon.svg"):
        assert f"/static/{file}" in page
        assert finders.find(file)


def test_the_controls_of_the_frame_are_buttons(browser_of: Browser) -> None:
    """unfold's own can be reached with a mouse only."""
    page = browser_of("root", is_superuser=True).get("/admin/jobs/job/").content.decode()
    for label in (
        'aria-label="Menu"',
        'aria-label="Sidebar"',
        'aria-controls="user-links"',
        "filters-button",
    ):
        before = page[: page.index(label)]
        assert before.rindex("<") == before.rindex("<button")
    assert '<main id="main"' in page


@pytest.mark.parametrize(
    ("address", "heading"),
    [
        ("/admin/jobs/job/", ["Jobs"]),
        ("/admin/jobs/job/add/", ["Jobs", "Add job"]),
        ("/admin/jobs/task/add/", ["Tasks", "Add task"]),
        ("/admin/executions/execution/", ["Runs"]),
        ("/admin/django_celery_results/taskresult/", ["Housekeeping"]),
        ("/admin/auth/user/{root}/change/", ["Users", "root"]),
        ("/admin/auth/user/{root}/password/", ["Users", "root", "Change password"]),
        ("/admin/calendar/", ["Calendar"]),
    ],
)
def test_a_heading_says_where_one_is_by_the_names_of_the_sidebar(
    browser_of: Browser, address: str, heading: list[str]
) -> None:
    root = browser_of("root", is_superuser=True)
    page = root.get(address.format(root=User.objects.get(username="root").pk)).content.decode()
    (head,) = re.findall(r"<h1.*?</h1>", page, re.DOTALL)
    assert [
        part.strip() for part in re.findall(r'class="align-middle[^>]*>(.*?)<', head, re.DOTALL)
    ] == heading
