"""Every relative link of the user-facing pages resolves, and the index names every page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ANCHOR = re.compile(r'<a (?:id|name)="([^"]+)"')
_SCHEME = re.compile(r"^[a-z]+:")


def pages() -> list[Path]:
    """Return the pages that people read: those at the top, docs, and those beside code."""
    folders = [ROOT / name for name in ("docs", "charts", "bench", "e2e", ".github")]
    below = [page for folder in folders for page in folder.glob("**/*.md")]
    return sorted([*ROOT.glob("*.md"), *below])


def links(text: str) -> list[str]:
    """Return the targets of the links outside code blocks that are no URLs."""
    prose = _CODE.sub("", _FENCE.sub("", text))
    return [target for target in _LINK.findall(prose) if not _SCHEME.match(target)]


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page; a repeated heading gets a number, as on GitHub."""
    times = Counter[str]()
    found = set(_ANCHOR.findall(text))
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        name = slug(heading)
        found.add(f"{name}-{times[name]}" if times[name] else name)
        times[name] += 1
    return found


def broken(page: Path) -> list[str]:
    """Return the links of a page whose file or anchor does not exist."""
    return [target for target in links(page.read_text()) if not _resolves(page, target)]


def _resolves(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file.read_text()))


def _linked(index: Path) -> set[Path]:
    targets = (target.partition("#")[0] for target in links(index.read_text()))
    return {(index.parent / name).resolve() for name in targets}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    assert not broken(page)


def test_the_index_links_every_page() -> None:
    """A folder may have an index of its own, which the index of all links."""
    linked = _linked(INDEX)
    own = [page for page in DOCS.glob("*/README.md") if page in linked]
    for index in own:
        linked |= _linked(index)
    missing = set(DOCS.glob("**/*.md")) - linked - {INDEX}
    assert not {str(page.relative_to(DOCS)) for page in missing}


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "there.md").write_text("# A `word` & more\n\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[1](there.md) [2](there.md#a-word--more) [3](gone.md) [4](there.md#no-heading)\n"
        "[5](#none) [6](../up.md) [7](https://example.com/gone) `[8](code.md)`\n"
    )
    assert broken(page) == ["gone.md", "there.md#no-heading", "#none", "../up.md"]
