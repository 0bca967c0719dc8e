"""Facts of PCIe links: a width that means "unknown" is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.facts.devices import link


@pytest.mark.parametrize(
    ("text", "width"),
    [("1", 1), ("16", 16), ("32", 32), ("0", None), ("63", None), ("255", None), ("", None)],
)
def test_the_width_of_a_link(text: str, width: int | None, tmp_path: Path) -> None:
    (tmp_path / "current_link_width").write_text(f"{text}\n")
    assert link(tmp_path, None).width == width
