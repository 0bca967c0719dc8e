"""Golden texts; ``make goldens`` writes them again."""

from __future__ import annotations

import os
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def compare(name: str, text: str) -> None:
    """``name`` is the path of the golden below ``tests/fixtures``."""
    golden = FIXTURES / name
    if os.environ.get("REVEAL_GOLDENS") == "write":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
    assert golden.exists(), f"no golden {name}: `make goldens` writes it"
    assert text.splitlines() == golden.read_text().splitlines(), "`make goldens` writes it again"
