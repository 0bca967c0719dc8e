"""Every made-up host through the whole collector, against what it gave before.

``make goldens`` writes the goldens anew; their difference says what a change changed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hosts import endtoend
from hosts.tree import Tree
from hosts.whole import HOSTS

GOLDENS = Path(__file__).parents[1] / "fixtures/hosts/goldens"
LARGEST = 300_000


@pytest.mark.parametrize("name", HOSTS)
def test_what_a_host_gives_is_what_it_gave(name: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    HOSTS[name](tree)
    text = endtoend.run(tree).text(str(tmp_path))
    golden = GOLDENS / f"{name}.txt"
    if os.environ.get("REVEAL_GOLDENS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert len(text.encode()) < LARGEST
    assert text.splitlines() == golden.read_text().splitlines()


def test_no_golden_is_left_of_a_host_that_is_gone() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == set(HOSTS)
