"""From the pages alone a new operator makes a job, sees it fail, finds out why, mends it and reruns it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.operator import Operator

SECONDS = 1000
PATIENCE = 60 * SECONDS  # with a loaded machine


def test_a_job_from_its_making_to_its_mending(operator: Operator) -> None:
    page = operator.open("/admin/")
    page.get_by_role("link", name=re.compile(r"\bJobs$")).first.click()
    page.get_by_title("Add job").first.click()
    page.get_by_role("textbox", name="Name").fill("nightly totals")
    page.get_by_label("Owner").select_option(label="data-engineering")
    page.get_by_label("Schedule").fill("0 2 * * 1-5")
    expect(page.get_by_text("At 02:00, Monday through Friday").first).to_be_visible(timeout=PATIENCE)
    operator.picture("walk-1-schedule")
    page.get_by_label("Type").select_option(label="Script")
    page.get_by_role("textbox", name="Command").fill("echo the totals are right")
    save(page)
    see_it_run(operator, "Completed Normally", "the totals are right")
    operator.picture("walk-2-ran")

    page.get_by_role("link", name="Open the job").click()
    page.get_by_role("textbox", name="Command").fill("echo no totals; exit 3")
    save(page)
    see_it_run(operator, "Completed Abnormally", "no totals")
    expect(page.get_by_text("exit code 3").first).to_be_visible()
    operator.picture("walk-3-broken")

    page.get_by_role("link", name="Open the job").click()
    page.get_by_role("textbox", name="Command").fill("echo the totals are right again")
    save(page)
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("row").filter(has_text="Completed Abnormally").get_by_role("link").first.click()
    page.get_by_role("button", name="Retry").click()
    ends(page, "Completed Normally", "the totals are right again")
    operator.picture("walk-4-mended")
    assert operator.complaints == []


def save(page: Page) -> None:
    """A job's page offers more than one way to save."""
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_role("button", name="Run now")).to_be_visible()


def see_it_run(operator: Operator, state: str, output: str) -> None:
    page = operator.page
    page.get_by_role("button", name="Run now").click()
    page.get_by_role("link", name="see the run").click()
    ends(page, state, output)


def ends(page: Page, state: str, output: str) -> None:
    """The page says so by itself: nobody reloads it."""
    expect(page.locator("#run-live").get_by_text(state, exact=True).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("log")).to_contain_text(output, timeout=PATIENCE)
