"""NUMA nodes: those that come online while the host runs."""

from __future__ import annotations

from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.sources import numa
from support.hosts.tree import Tree
from support.source_reader import read_values, source_opened


def add_node(tree: Tree, number: int, free_kb: int) -> None:
    folder = f"sys/devices/system/node/node{number}"
    tree.write(f"{folder}/numastat", "numa_hit 1\n")
    tree.write(f"{folder}/meminfo", f"Node {number} MemFree:  {free_kb} kB\n")


def test_a_node_that_comes_online_later_is_read(tree: Tree) -> None:
    add_node(tree, 0, 500)
    with source_opened(numa.sources, tree.roots, "numa") as source:
        assert "memory.numa.mem_free{2}" not in read_values(source)
        add_node(tree, 2, 900)
        for _ in range(2 * CHECK_EVERY):
            observed = read_values(source)
    assert observed["memory.numa.mem_free{0}"] == 500 * 1024
    assert observed["memory.numa.mem_free{2}"] == 900 * 1024
