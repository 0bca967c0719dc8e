"""EDAC: memory errors by controller and by the module to replace, whatever the kernel's shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.sources import edac
from support.hosts.edac import add_edac
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values

MC = "sys/devices/system/edac/mc"


def test_a_host_without_edac_has_a_reason(tree: Tree) -> None:
    with pytest.raises(Unsupported, match="no memory controller"):
        open_source(edac.sources, tree.roots, "edac")


def test_errors_are_counted_by_controller_and_module(tree: Tree) -> None:
    add_edac(tree, controllers=2, modules=4)
    tree.write(f"{MC}/mc1/ce_count", 7)
    tree.write(f"{MC}/mc1/dimm2/dimm_ce_count", 6)
    tree.write(f"{MC}/mc1/ce_noinfo_count", 1)
    tree.write(f"{MC}/mc0/dimm0/dimm_ue_count", 1)
    observed = read_values(open_source(edac.sources, tree.roots, "edac"))
    assert len(observed) == 2 * (4 + 4 * 2)
    assert {label: value for label, value in observed.items() if value} == {
        "memory.ecc.correctable{mc1}": 7,
        "memory.ecc.correctable_unplaced{mc1}": 1,
        "memory.ecc.dimm.correctable{mc1/dimm2 CPU_SrcID#1_MC#0_Chan#2_DIMM#0}": 6,
        "memory.ecc.dimm.uncorrectable{mc0/dimm0 CPU_SrcID#0_MC#0_Chan#0_DIMM#0}": 1,
    }


def test_modules_of_a_driver_that_sees_ranks(tree: Tree) -> None:
    add_edac(tree, 1, 2, shape="rank", labels=False)
    observed = read_values(open_source(edac.sources, tree.roots, "edac"))
    assert {label for label in observed if "dimm" in label} == {
        f"memory.ecc.dimm.{kind}{{mc0/rank{rank}}}"
        for rank in range(2)
        for kind in ("correctable", "uncorrectable")
    }


def test_rows_of_an_old_kernel(tree: Tree) -> None:
    add_edac(tree, 1, 1, shape="csrow")
    tree.write(f"{MC}/mc0/csrow0/ch1_ce_count", 3)
    observed = read_values(open_source(edac.sources, tree.roots, "edac"))
    label = "CPU_SrcID#0_MC#0_Chan#0_DIMM#0"
    assert observed[f"memory.ecc.dimm.correctable{{mc0/csrow0/ch1 {label}}}"] == 3
    assert observed["memory.ecc.dimm.uncorrectable{mc0/csrow0}"] == 0


def test_firmware_first_and_a_driver_loaded_later(tree: Tree) -> None:
    add_edac(tree, 1, 16, driver="ghes_edac")
    source = open_source(edac.sources, tree.roots, "edac")
    assert len(source.channels) == 4 + 16 * 2
    add_edac(tree, 2, 4)
    with pytest.raises(LayoutChanged):
        for _ in range(10):  # what there is, is looked at every ten readings
            source.read()
    assert any(channel.instance.startswith("mc1") for channel in source.channels)


def test_an_error_shows_within_ten_readings_of_a_quiet_module(tree: Tree) -> None:
    add_edac(tree, 1, 8)
    source = open_source(edac.sources, tree.roots, "edac")
    for _ in range(12):
        source.read()
    tree.write(f"{MC}/mc0/dimm5/dimm_ce_count", 2)
    readings = [read_values(source) for _ in range(10)]
    label = "memory.ecc.dimm.correctable{mc0/dimm5 CPU_SrcID#0_MC#0_Chan#5_DIMM#0}"
    assert readings[-1][label] == 2


@pytest.mark.parametrize("label", ["", "  \n", "any memory", "unknown memory", "mc#0csrow#1"])
def test_meaningless_labels_are_omitted(label: str) -> None:
    assert edac.module_instance("mc0", "dimm1", label) == "mc0/dimm1"


@given(st.text(max_size=60))
def test_any_label_makes_a_single_line_instance(label: str) -> None:
    instance = edac.module_instance("mc0", "dimm1", label)
    assert instance.startswith("mc0/dimm1")
    assert instance == " ".join(instance.split())
