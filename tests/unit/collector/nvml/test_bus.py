"""GPUs that the PCI bus has and NVIDIA's driver does not list."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.nvml.bus import BusGpus
from support.hosts.pci import Function, add_function
from support.hosts.tree import Tree

FIRST, SECOND, THIRD = "0000:19:00.0", "0000:2a:00.0", "0000:3b:00.0"
H100, OTHER = "0x2330\n", "0x128b\n"


def add_gpu(tree: Tree, address: str, driver: str = "nvidia", model: str = H100) -> None:
    folder = add_function(tree, Function(address, driver=driver or "none"))
    tree.write(f"{folder}/device", model)
    if not driver:
        tree.remove(f"{folder}/driver")
    if driver == "nvidia":
        tree.write(f"driver/{address}/information", "Model: \t NVIDIA H100\nGPU Excluded:\t No\n")


@pytest.fixture
def bus(tree: Tree) -> BusGpus:
    add_gpu(tree, FIRST)
    return BusGpus(tree.roots.sys, tree.root / "driver")


def test_a_gpu_of_the_driver_that_is_not_listed_is_expected(tree: Tree, bus: BusGpus) -> None:
    add_gpu(tree, SECOND)
    assert bus.unlisted({FIRST}) == (SECOND,)
    assert bus.unlisted({FIRST, SECOND}) == ()


def test_a_gpu_that_the_driver_did_not_take_is_expected_like_its_equals(
    tree: Tree, bus: BusGpus
) -> None:
    add_gpu(tree, SECOND, driver="")
    add_gpu(tree, THIRD, driver="", model=OTHER)  # too old for this driver
    assert bus.unlisted({FIRST}) == (SECOND,)


def test_a_gpu_of_a_virtual_machine_is_not_expected(tree: Tree, bus: BusGpus) -> None:
    add_gpu(tree, SECOND, driver="vfio-pci")
    assert bus.unlisted({FIRST}) == ()


def test_a_gpu_that_is_excluded_or_of_another_container_is_not_expected(
    tree: Tree, bus: BusGpus
) -> None:
    add_gpu(tree, SECOND)
    tree.write(f"driver/{SECOND}/information", "Model: \t NVIDIA H100\nGPU Excluded:\t Yes\n")
    add_gpu(tree, THIRD)
    tree.remove(f"driver/{THIRD}")
    assert bus.unlisted({FIRST}) == ()


def test_the_bus_is_listed_again_when_a_card_comes(tree: Tree, bus: BusGpus) -> None:
    assert bus.unlisted({FIRST}) == ()
    add_gpu(tree, SECOND)
    assert bus.unlisted({FIRST}) == (SECOND,)


def test_a_host_without_a_bus_expects_nothing(tmp_path: Path) -> None:
    assert BusGpus(tmp_path, tmp_path).unlisted({FIRST}) == ()
