"""A whole system with its web server, and a browser. Both once for each file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.operator import Operator, new_operator
from tests.system import System, running_system

# Without the last four it asks hosts on the network at its start.
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PEOPLE = """
from django.contrib.auth.models import Group, User
team, _ = Group.objects.get_or_create(name="data-engineering")
for name in ("operator", "somebody"):
    user = User.objects.create_user(name, password=password, is_staff=True)
    user.groups.add(team if name == "operator" else Group.objects.get_or_create(name="finance")[0])
User.objects.create_superuser("root", password=password)
"""
PASSWORD = "a long one for the tests"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system")) as found:
        found.start_all("beat worker recorder auditor web")
        found.wait_until_ready()
        found.console.run(PEOPLE, password=PASSWORD)
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "no chromium on PATH: make services"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield found
        found.close()


@pytest.fixture(scope="module")
def operator(system: System, browser: Browser) -> Iterator[Operator]:
    """A member of the team data-engineering, logged in, in one window for all of a file's tests."""
    found = new_operator(browser, system.site)
    found.log_in("operator", PASSWORD)
    yield found
    found.page.context.close()
