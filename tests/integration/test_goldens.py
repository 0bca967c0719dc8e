"""Every made-up host through the whole collector, against what it gave before.

``make goldens`` writes the goldens anew; their difference says what a change changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts import endtoend
from hosts.tree import Tree
from hosts.whole import HOSTS

GOLDENS = Path(__file__).parents[1] / "fixtures/hosts/goldens"
LARGEST = 300_000


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is a place for that: a host of 224 CPUs has 15,000 files."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="reveal-host-", dir=place) as made:
        yield Path(made)


@pytest.mark.parametrize("name", HOSTS)
def test_what_a_host_gives_is_what_it_gave(name: str, folder: Path) -> None:
    tree = Tree(folder)
    HOSTS[name](tree)
    text = endtoend.run(tree).text(str(folder))
    golden = GOLDENS / f"{name}.txt"
    if os.environ.get("REVEAL_GOLDENS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert len(text.encode()) < LARGEST
    assert text.splitlines() == golden.read_text().splitlines()


def test_no_golden_is_left_of_a_host_that_is_gone() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == set(HOSTS)
