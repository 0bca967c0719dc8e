"""Paths that the pages for developers name in code spans exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([
    *ROOT.glob("*.md"), *ROOT.glob("docs/contributing/*.md"), *ROOT.glob("docs/decisions/0*.md"),
    *ROOT.glob(".github/*.md"),
])  # fmt: skip
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\s]+)`")
# a page may leave out the source root of a package
_PACKAGE = re.compile(r"reveal_(contract|collector|analyzer|operator|cli)/")
_TOP = tuple(f"{path.name}/" for path in ROOT.iterdir() if path.is_dir())


def named(text: str) -> set[str]:
    """Return the paths of the repository in the code spans of a page."""
    spans = _CODE.findall(_FENCE.sub("", text))
    paths = (_PACKAGE.sub(r"\1/\g<0>", span) if _PACKAGE.match(span) else span for span in spans)
    return {path for path in paths if path.startswith(_TOP)}


def exists(path: str) -> bool:
    """Tell whether a path, in which ``*`` and ``NAME`` stand for anything, is there."""
    return any(ROOT.glob(re.sub(r"NAME", "*", path.rstrip("/"))))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert not sorted(path for path in named(page.read_text()) if not exists(path))


def test_a_path_that_is_gone_is_found() -> None:
    text = "`reveal_analyzer/live/` `docs/gone.md` `tests/unit/test_*.py` `make test` `a/b`"
    assert sorted(path for path in named(text) if not exists(path)) == ["docs/gone.md"]
