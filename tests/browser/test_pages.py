"""Every page: it comes, keeps nobody out, fits a phone, and the browser complains of nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PASSWORD
from tests.browser.operator import Operator, new_operator
from tests.e2e.test_runs import body
from tests.system import System

WINDOWS = {"desktop": {}, "phone-dark": {"phone": True, "dark": True}}
PAGES = {
    "dashboard": "/admin/",
    "jobs": "/admin/jobs/job/",
    "new-job": "/admin/jobs/job/add/",
    "job": "/admin/jobs/job/{job}/change/",
    "run-with": "/admin/jobs/job/{job}/run-with/",
    "backfill": "/admin/jobs/job/{job}/backfill/",
    "runs": "/admin/executions/execution/",
    "run": "/admin/executions/execution/{run}/change/",
    "calendar": "/admin/calendar/",
    "tasks": "/admin/jobs/task/",
    "new-task": "/admin/jobs/task/add/",
    "pools": "/admin/jobs/pool/",
    "tokens": "/admin/access/apitoken/",
    "new-token": "/admin/access/apitoken/add/",
    "users": "/admin/auth/user/",
    "changes": "/admin/trail/changerecord/",
    "dead-letters": "/admin/dead-letters/",
    "swagger": "/api/v1/docs",
    "redoc": "/api/v1/redoc",
}
NOT_OURS = ("swagger", "redoc")  # what they look like is their makers' business
_DEAD_LETTERS = """
from tests.integration.executions.letters import bury
bury(b"no event", b'{"events": [{"type": "JOB_X", "password": "hunter2", "execution": "%s"}]}' % (b"0" * 300))
bury(*(b"other %d" % number for number in range(3)))
bury(b"<script>alert(1)</script>", lang="py", task="executions.run", argsrepr="()")
result = None
"""


@pytest.fixture(scope="module")
def places(system: System) -> dict[str, str]:
    """A job with a run that has failed twice and said something; and dead letters."""
    command = "printf '\\033[31mred\\033[0m <b>plain</b>\\n'; exit 3"
    (job,) = system.create_jobs(body("seen", command, "now", retries=1, retryDelay="1s"))
    (run,) = system.wait_all_terminal([job], 1)
    system.console.run(_DEAD_LETTERS)
    return {"job": job, "run": str(run["id"])}


@pytest.fixture(scope="module", params=WINDOWS)
def window(
    request: pytest.FixtureRequest, system: System, browser: Browser
) -> Iterator[tuple[str, Operator]]:
    found = new_operator(browser, system.site, **WINDOWS[request.param])
    found.log_in("root", PASSWORD)
    yield request.param, found
    found.page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_comes_and_can_be_used_by_anybody(
    window: tuple[str, Operator], places: dict[str, str], name: str
) -> None:
    size, somebody = window
    somebody.complaints.clear()
    somebody.open(PAGES[name].format(**places))
    somebody.page.wait_for_load_state("networkidle" if name in NOT_OURS else "load")
    somebody.picture(f"{name}-{size}", whole=name not in NOT_OURS)  # Redoc's is a hundred windows long
    assert somebody.complaints == []
    if name not in NOT_OURS:
        assert somebody.barriers() == []
        assert somebody.overflow() <= 0


def test_dead_letters_are_announced_and_one_is_discarded_after_a_question(
    window: tuple[str, Operator], places: dict[str, str]
) -> None:
    size, somebody = window
    page = somebody.open("/admin/")
    page.get_by_role("link", name="Look at them").wait_for()
    somebody.picture(f"dashboard-dead-letters-{size}")
    page.get_by_role("link", name="Look at them").click()
    letters = page.get_by_role("listitem").filter(has_text="not a message of events")
    expect(letters).not_to_have_count(0)
    before = letters.count()
    letters.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Discard the chosen…").click()
    somebody.picture(f"discard-{size}")
    assert somebody.barriers() == []
    page.get_by_role("button", name="Yes, discard").click()
    expect(page.get_by_text("1 dead letter was discarded.")).to_be_visible()
    expect(letters).to_have_count(before - 1)


def test_the_output_of_a_run_has_its_colours_and_no_markup(
    window: tuple[str, Operator], places: dict[str, str]
) -> None:
    _, somebody = window
    page = somebody.open(PAGES["run"].format(**places))
    log = page.get_by_role("log")
    log.get_by_text("red", exact=True).wait_for()
    assert "<b>plain</b>" in log.inner_text()
    red, plain = (
        log.get_by_text(text).evaluate("element => getComputedStyle(element).color")
        for text in ("red", "<b>plain</b>")
    )
    assert red != plain


def test_a_schedule_that_is_not_finished_is_no_error_of_the_page(operator: Operator) -> None:
    page = operator.open("/admin/jobs/job/add/")
    page.get_by_label("Schedule").fill("0 2 *")
    expect(page.get_by_text("'0 2 *' has 3 fields")).to_be_visible(timeout=60_000)
    assert operator.complaints == []
