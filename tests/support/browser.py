"""A real Chromium: pages are opened in it, and what goes wrong there is noted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# as root in a container: there is neither a sandbox nor much of /dev/shm
_FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
_GRAVE = {"serious", "critical"}


def program() -> str:
    """Return the path of Chromium; empty where there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), "")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """An open page; ``errors`` are those of its console and scripts, ``requests`` their URLs."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def grave_problems(self) -> list[str]:
        """Return the rules of axe-core that the page breaks, serious and critical ones."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in found
            if each["impact"] in _GRAVE
        ]

    @property
    def is_too_wide(self) -> bool:
        """Whether one must scroll sideways."""
        script = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(script))


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open a page; ``options`` are those of a context of Playwright."""
    context = browser.new_context(**options)
    try:
        opened = Visit(context.new_page())
        opened.page.on("console", opened.note)
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(url)
        yield opened
    finally:
        context.close()
