"""The size of a recording: help and pages name one figure, and no binary unit."""

from __future__ import annotations

import re
from pathlib import Path

from reveal_cli.flags_page import page, programs

ROOT = Path(__file__).parents[3]
KB_A_SECOND = 3
DAY_S = 86_400
# figures of other things: what a node sends, what a bench measured, what an example run wrote
_OTHER = re.compile(r"sends|receives|network|wire\.json|in this example")
_RATE = re.compile(r"([\d.]+) (?:k|K)B a second")
_DAY = re.compile(r"([\d.]+) MB a day")


def lines() -> list[tuple[str, str]]:
    """Return the lines of all pages and of all help texts, with where they stand."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [(each.name, line) for each in pages for line in each.read_text().splitlines()]
    return [*found, *(("help", line) for line in page(programs()).splitlines())]


def test_all_figures_of_a_recording_agree() -> None:
    rates = [
        (where, float(rate))
        for where, line in lines()
        if not _OTHER.search(line)
        for rate in _RATE.findall(line)
    ]
    assert {where for where, _ in rates} >= {"help", "formats.md", "sizing.md"}
    assert {rate for _, rate in rates} == {KB_A_SECOND}
    days = {float(day) for _, line in lines() for day in _DAY.findall(line)}
    assert days == {round(KB_A_SECOND * DAY_S / 1e3, -1)}


def test_bytes_are_counted_in_decimal_units() -> None:
    records = {path.name for path in (ROOT / "docs/decisions").glob("*.md")}  # as they were decided
    binary = [where for where, line in lines() if re.search(r"\d KB\b", line)]
    assert [where for where in binary if where not in records] == []
