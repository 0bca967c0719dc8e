"""Huge page pools of the host and of its NUMA nodes."""

from __future__ import annotations

from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.sources import hugepages
from support.hosts.tree import Tree
from support.source_reader import read_values, source_opened

_MIB = 1 << 20


def add_pool(tree: Tree, folder: str, pages: int) -> None:
    for name in ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"):
        tree.write(f"{folder}/hugepages-2048kB/{name}", pages)


def test_the_pools_of_a_node_that_comes_online_later_are_read(tree: Tree) -> None:
    add_pool(tree, "sys/kernel/mm/hugepages", 10)
    add_pool(tree, "sys/devices/system/node/node0/hugepages", 10)
    with source_opened(hugepages.sources, tree.roots, "hugepages") as source:
        assert len(read_values(source)) == 4 + 3
        add_pool(tree, "sys/devices/system/node/node1/hugepages", 3)
        for _ in range(2 * CHECK_EVERY):
            observed = read_values(source)
    assert observed["memory.hugepages.total{2048kB}"] == 20 * _MIB
    assert observed["memory.hugepages.numa.total{2048kB/1}"] == 6 * _MIB


def test_a_node_without_pools_leaves_the_others(tree: Tree) -> None:
    add_pool(tree, "sys/kernel/mm/hugepages", 10)
    tree.write("sys/devices/system/node/node0/cpulist", "0\n")
    with source_opened(hugepages.sources, tree.roots, "hugepages") as source:
        assert len(read_values(source)) == 4
