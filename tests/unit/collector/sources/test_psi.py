"""Pressure stall information: files that come later."""

from __future__ import annotations

from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.sources import psi
from support.hosts.tree import Tree
from support.source_reader import read_values, source_opened

_LINE = "avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"


def test_a_file_that_appears_later_is_read(tree: Tree) -> None:
    tree.write("proc/pressure/cpu", f"some {_LINE}")
    with source_opened(psi.sources, tree.roots, "psi") as source:
        assert read_values(source) == {"cpu.pressure.some": 7000}
        tree.write("proc/pressure/irq", f"full {_LINE}")
        for _ in range(2 * 10 * CHECK_EVERY):
            observed = read_values(source)
    assert observed == {"cpu.pressure.some": 7000, "cpu.pressure.irq": 7000}
