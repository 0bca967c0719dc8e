"""The page of findings in a real Chromium: errors, requests, brush, keys, accessibility, print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reveal_cli.page.document import document
from support.browser import chromium, program, visit
from support.finding_factory import scan_finding
from support.html_pages import page_of

pytestmark = [
    pytest.mark.skipif(not program(), reason="there is no Chromium"),
    pytest.mark.timeout(120),
]
FINDINGS, PANELS = 10, 30
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with ten findings of thirty series each."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    findings = [scan_finding(f"claim {number}") for number in range(FINDINGS)]
    file.write_text(document(page_of(findings, panels=PANELS)))
    return file.as_uri()


def test_a_large_page_loads_nothing_else_and_has_no_error(browser: Browser, url: str) -> None:
    with visit(browser, url) as opened:
        assert opened.page.locator("article").count() == FINDINGS
        assert opened.page.locator("article figure.chart svg").count() >= FINDINGS * PANELS
        assert (opened.errors, opened.requests) == ([], [url])


def test_a_dragged_span_is_ranked(browser: Browser, url: str) -> None:
    with visit(browser, url) as opened:
        page = opened.page
        caption = page.locator("#ranking caption")
        lane = page.locator("#lanes .plot").first
        lane.scroll_into_view_if_needed()
        box = lane.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.99 * box["width"], box["y"] + box["height"] / 2, steps=5)
        page.mouse.up()
        text = caption.inner_text()
        assert text.startswith("Metrics that left their mean most from")
        assert page.locator("#span-text").inner_text() in text
        # the series rises until the end of the page
        assert "cpu.busy" in page.locator("#ranking tbody tr").first.inner_text()
        assert opened.errors == []


def test_charts_of_a_finding_follow_the_keys(browser: Browser, url: str) -> None:
    with visit(browser, url) as opened:
        group = opened.page.locator(".linked").first
        read = group.locator(".read")
        group.focus()
        opened.page.keyboard.press("Home")
        first = read.first.inner_text()
        opened.page.keyboard.press("ArrowRight")
        assert read.first.inner_text() != first
        assert read.last.inner_text().split(" at ")[1] == read.first.inner_text().split(" at ")[1]
        box = group.locator("svg").first.get_attribute("viewBox")
        opened.page.keyboard.press("+")
        assert group.locator("svg").last.get_attribute("viewBox") != box
        assert opened.errors == []


@SCHEMES
def test_the_page_has_no_serious_problem_for_assistive_programs(
    browser: Browser, url: str, scheme: str
) -> None:
    with visit(browser, url, color_scheme=scheme) as opened:
        assert opened.grave_problems() == []


def test_a_narrow_screen_scrolls_down_only(browser: Browser, url: str) -> None:
    with visit(browser, url, viewport={"width": 360, "height": 640}) as opened:
        assert not opened.is_too_wide


def test_the_page_is_complete_without_scripts(browser: Browser, url: str) -> None:
    with visit(browser, url, java_script_enabled=False) as opened:
        assert opened.page.locator("h1").is_visible()
        assert opened.page.locator("article figure.chart svg").first.is_visible()
        assert not opened.page.locator("#span-form").is_visible()


def test_the_page_prints(browser: Browser, url: str, tmp_path: Path) -> None:
    with visit(browser, url) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.locator("h1").is_visible()
        assert not opened.page.locator("#span-form").is_visible()
        data = opened.page.pdf(path=tmp_path / "page.pdf", format="A4")
        assert data.startswith(b"%PDF")
