"""The dashboard and the calendar in a browser: they draw, by keyboard too, and say when they are old."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import PASSWORD
from tests.browser.operator import Operator, new_operator
from tests.system import System

_JOBS = """
from django.contrib.auth.models import User
from jobs.definitions import read_definition
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow
root = User.objects.get(username="root")
for number in range(3):
    create_job(read_definition({"name": f"herd-{number}", "owner": "data-engineering", "type": "Script",
                                "command": "true", "schedule": "0 2 * * *"}), root, utcnow())
"""


LOOK = "document.dispatchEvent(new Event('visibilitychange'))"
"""Somebody comes back to the tab: it asks at once."""


@pytest.fixture(scope="module")
def phone(system: System, browser: Browser) -> Operator:
    """A member on a phone, in the dark; the team has three jobs at two o'clock."""
    system.console.run(_JOBS)
    found = new_operator(browser, system.site, phone=True, dark=True)
    found.log_in("operator", PASSWORD)
    return found


def test_the_dashboard_draws_on_a_phone_and_in_the_dark(phone: Operator) -> None:
    page = phone.open("/admin/")
    expect(page.get_by_role("img", name="Due and started per minute")).to_be_visible()
    expect(page.get_by_role("link", name="herd-0")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("As of")
    phone.picture("dashboard-phone-dark")
    assert phone.overflow() <= 0
    assert phone.barriers() == []
    page.get_by_role("img", name="Due and started per minute").press("ArrowLeft")
    expect(page.get_by_text("due 0, started 0")).to_be_visible()
    assert phone.complaints == []


def test_it_says_when_what_it_shows_is_old(phone: Operator) -> None:
    page = phone.open("/admin/")
    expect(page.get_by_role("status")).to_contain_text("As of")
    page.route("**/api/v1/overview", lambda route: route.fulfill(status=503, body="{}"))
    page.evaluate(LOOK)
    expect(page.get_by_role("status")).to_contain_text("The server answers 503")
    page.unroute("**/api/v1/overview")
    page.evaluate(LOOK)
    expect(page.get_by_role("status")).to_contain_text("As of")
    phone.complaints.clear()  # the 503


def test_it_asks_nothing_while_it_is_paused(phone: Operator) -> None:
    page, asked = phone.open("/admin/"), []

    def count(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    expect(page.get_by_role("status")).to_contain_text("As of")
    page.route("**/api/v1/overview", count)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_contain_text("(paused)")
    before = len(asked)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("status")).not_to_contain_text("(paused)")
    assert len(asked) == before + 1


def test_the_herd_is_seen_and_listed_by_keyboard(phone: Operator) -> None:
    page = phone.open("/admin/calendar/")
    expect(page.get_by_role("status")).to_contain_text("21 starts of 3 jobs")
    page.get_by_role("button", name="show them in UTC").click()
    day = page.get_by_role("application").nth(1)
    for _ in range(3):  # onto midnight, then two hours down
        day.press("ArrowDown")
    expect(page.locator("[data-readout]")).to_contain_text("02:00 UTC: 3 starts")
    day.press("Enter")
    expect(page.get_by_role("link", name="herd-2")).to_be_visible()
    expect(page.get_by_text("give it a jitter")).to_be_visible()
    phone.picture("calendar-phone-dark")
    assert phone.overflow() <= 0
    assert phone.barriers() == []
    assert phone.complaints == []
