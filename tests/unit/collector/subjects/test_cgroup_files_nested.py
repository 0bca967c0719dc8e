"""A node that is itself a container: its cgroup tree describes the node, not the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_collector.readers.source import Roots
from reveal_collector.sources import psi
from reveal_collector.subjects.cgroup_files import node_container_root
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values


def waited(seconds: int) -> str:
    line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={seconds}000000\n"
    return f"some {line}full {line}"


@pytest.fixture
def machine(tree: Tree) -> Tree:
    for name in ("cpu", "memory", "io"):
        tree.write(f"proc/pressure/{name}", waited(50))
        tree.write(f"cgroup/{name}.pressure", waited(7))
    tree.write("cgroup/cgroup.controllers", "cpu io memory\n")
    return tree


def stalled(tree: Tree) -> float | None:
    return read_values(open_source(psi.sources, tree.roots, "psi"))["storage.pressure.some"]


def test_the_machines_root_has_the_machines_pressure(machine: Tree) -> None:
    assert node_container_root(machine.roots) is None
    assert stalled(machine) == 50e9


@pytest.mark.parametrize("mount", ["cgroup", "cgroup/unified"])
def test_a_nodes_root_has_the_nodes_pressure(machine: Tree, mount: str) -> None:
    for name in ("cpu", "memory", "io"):
        machine.write(f"{mount}/{name}.pressure", waited(7))
    machine.write(f"{mount}/cgroup.type", "domain\n")
    assert node_container_root(machine.roots) == machine.root / mount
    assert stalled(machine) == 7e9
    machine.write(f"{mount}/io.pressure", waited(9))
    assert stalled(machine) == 9e9


def test_who_looks_around_in_a_container_still_sees_the_host(machine: Tree) -> None:
    assert node_container_root(replace(machine.roots, cgroup=Roots().cgroup)) is None
