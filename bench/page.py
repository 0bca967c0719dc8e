"""How fast pages of findings open in a real Chromium, and how fast a span is ranked.

    python bench/page.py                      a page made by hand: ten findings of thirty series
    python bench/page.py RECORDING|DIR...     pages of recordings, and of the files of scans

Opening is until the browser has drawn the page (its first contentful paint) and its script has run
(the end of the load event).  Ranking is from the event of a moved end until the browser has drawn
the new table.  It counts errors of the console, and requests.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_report import Row, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser

from reveal_cli.errors import DONE, FOUND
from reveal_cli.page.document import document
from support.browser import chromium, program, visit
from support.finding_factory import scan_finding
from support.html_pages import page_of

ROUNDS = 7
FINDINGS, PANELS = 10, 30
# milliseconds since the navigation began
_LOADED = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return Math.max(page.loadEventEnd, paint ? paint.startTime : 0);
}"""
_RANKED = """() => new Promise((done) => {
  const input = document.getElementById("span-from");
  const began = performance.now();
  input.value = "0";
  input.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""


@dataclass(frozen=True)
class Opened:
    """One visit: milliseconds, and what went wrong."""

    load_ms: float
    rank_ms: float
    errors: int
    requests: int


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", metavar="INPUT", nargs="*", type=Path)
    asked = parser.parse_args(argv)
    if not program():
        print("there is no Chromium here: install it (apt install chromium)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        pages = _pages(asked.inputs, Path(folder))
        report("page", [_row(browser, name, page) for name, page in pages.items()])
    return 0


def _pages(inputs: Sequence[Path], folder: Path) -> dict[str, Path]:
    """Return the pages by what they are of."""
    pages = {}
    for number, source in enumerate(inputs):
        pages[source.name] = folder / f"{number}.html"
        command = [sys.executable, "-m", "reveal_cli", "report", source, "-o", pages[source.name]]
        done = subprocess.run(command, check=False)
        if done.returncode not in (DONE, FOUND):
            sys.exit(done.returncode)
    if not inputs:
        page = pages[f"{FINDINGS} findings of {PANELS} series"] = folder / "page.html"
        findings = [scan_finding(f"claim {number}") for number in range(FINDINGS)]
        page.write_text(document(page_of(findings, panels=PANELS)))
    return pages


def _row(browser: Browser, name: str, page: Path) -> Row:
    visits = [_opened(browser, page) for _ in range(ROUNDS)]
    return {
        "page": name,
        "kB": round(page.stat().st_size / 1000),
        "load, ms": round(statistics.median(each.load_ms for each in visits)),
        "load, worst": round(max(each.load_ms for each in visits)),
        "rank, ms": round(statistics.median(each.rank_ms for each in visits)),
        "rank, worst": round(max(each.rank_ms for each in visits)),
        "errors": sum(each.errors for each in visits),
        "other requests": sum(each.requests - 1 for each in visits),
    }


def _opened(browser: Browser, page: Path) -> Opened:
    with visit(browser, page.as_uri()) as opened:
        load_ms = float(opened.page.evaluate(_LOADED))
        rank_ms = float(opened.page.evaluate(_RANKED))
        return Opened(load_ms, rank_ms, len(opened.errors), len(opened.requests))


if __name__ == "__main__":
    sys.exit(main())
