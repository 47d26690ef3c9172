"""Somebody at a browser: opens pages, looks, presses, and tells whatever the browser complains of.

Every picture goes to ``artefacts/pages`` (PUNCTUAL_TEST_ARTEFACTS), which git ignores and CI may keep.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Response

from tests.system import ROOT

ARTEFACTS = Path(os.environ.get("PUNCTUAL_TEST_ARTEFACTS", str(ROOT / "artefacts"))) / "pages"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SERIOUS = ("serious", "critical")


@dataclass
class Operator:
    """One browser window of somebody; ``complaints``: console errors, exceptions, answers of 500 and more."""

    page: Page
    site: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._hear(message.type == "error", message.text))
        self.page.on("pageerror", lambda error: self._hear(True, str(error)))
        self.page.on("response", self._look_at)

    def _hear(self, bad: bool, text: str) -> None:
        if bad:
            self.complaints.append(f"{self.page.url}: {text}")

    def _look_at(self, response: Response) -> None:
        self._hear(response.status >= 500, f"{response.status} {response.url}")

    def open(self, path: str) -> Page:
        self.page.goto(self.site + path)
        return self.page

    def log_in(self, name: str, password: str) -> None:
        self.open("/admin/login/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/admin/")

    def picture(self, name: str, *, whole: bool = True) -> None:
        """``whole``: also what the window does not show."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=whole)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def barriers(self) -> list[str]:
        """What axe-core says would keep somebody from using this page, one line each."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{self.page.url}: {rule['id']}: {node['html'][:160]}"
            for rule in found
            if rule["impact"] in SERIOUS
            for node in rule["nodes"]
        ]


def new_operator(browser: Browser, site: str, *, phone: bool = False, dark: bool = False) -> Operator:
    context: BrowserContext = browser.new_context(
        viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]
        has_touch=phone,
        color_scheme="dark" if dark else "light",
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    context.set_default_timeout(15_000)
    return Operator(context.new_page(), site)
