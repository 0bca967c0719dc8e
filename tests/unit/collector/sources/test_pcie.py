"""PCIe links are limited by their slower end, and errors are counted at both ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.devices import pci
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.sources import pcie
from reveal_contract.catalogue import find
from reveal_contract.metric import Harm, Subsystem
from support.hosts.pci import (
    DISPLAY,
    GPU,
    INFINIBAND,
    NETWORK,
    NVME,
    Function,
    add_errors,
    add_function,
)
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values, source_opened

TURNS = 10  # readings within which a quiet file, and what there is, is looked at
CARD = Function("0000:18:00.0", GPU, port="0000:17:01.0")


def test_devices_by_kind_and_name(tree: Tree) -> None:
    add_function(tree, Function("0000:3b:00.0", NETWORK, "ice", port="0000:3a:00.0"))
    tree.folder("sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/eth0")
    add_function(tree, Function("0000:5d:00.0", INFINIBAND, "mlx5_core"))
    tree.folder("sys/devices/pci0000:5d/0000:5d:00.0/infiniband/mlx5_0")
    add_function(tree, Function("0000:50:00.0", NVME, "nvme"))
    tree.folder("sys/devices/pci0000:50/0000:50:00.0/nvme/nvme0")
    add_function(tree, Function("0000:18:00.0", GPU))
    add_function(tree, Function("0000:c1:00.0", DISPLAY, "amdgpu"))
    tree.folder("sys/devices/pci0000:c1/0000:c1:00.0/drm/card1")
    tree.folder("sys/devices/pci0000:c1/0000:c1:00.0/drm/renderD128")
    add_function(tree, Function("0000:00:1f.0", "0x060100", "lpc_ich"))
    add_function(tree, Function("0000:02:00.0", DISPLAY, "ast", vendor="0x1a03"))  # a BMC's
    assert [(device.kind, device.instance) for device in pci.pci_devices(tree.roots.sys)] == [
        ("gpu", "0000:18:00.0 nvidia"),
        ("network", "0000:3b:00.0 eth0"),
        ("storage", "0000:50:00.0 nvme0"),
        ("network", "0000:5d:00.0 mlx5_0"),
        ("gpu", "0000:c1:00.0 card1"),
    ]


def test_virtual_functions_repeat_their_card(tree: Tree) -> None:
    add_function(tree, Function("0000:3b:00.0", NETWORK, "ice"))
    function = add_function(tree, Function("0000:3b:01.0", NETWORK, "iavf"))
    tree.link(f"{function}/physfn", "../0000:3b:00.0")
    assert [device.address for device in pci.pci_devices(tree.roots.sys)] == ["0000:3b:00.0"]


def test_address_of_what_lies_below_a_device(tree: Tree) -> None:
    function = add_function(tree, CARD)
    tree.folder(f"{function}/net/eth0")
    assert pci.address_of(tree.root / function / "net/eth0") == CARD.address
    assert pci.address_of(tree.root / "sys/devices/virtual/net/lo") == ""


def test_a_lost_lane_shows_against_what_both_ends_can(tree: Tree) -> None:
    add_function(tree, Function("0000:18:00.0", GPU, width=8, port="0000:17:01.0"))
    tree.write("sys/devices/pci0000:17/0000:17:01.0/max_link_speed", "16.0 GT/s PCIe\n")
    source = open_source(pcie.sources, tree.roots, "pcie")
    where = "{0000:18:00.0 nvidia}"
    assert read_values(source) == {
        f"gpu.pcie.width{where}": 8,
        f"gpu.pcie.width_maximum{where}": 16,
        f"gpu.pcie.speed{where}": 32e9,
        f"gpu.pcie.speed_maximum{where}": 16e9,  # the slot is slower than the card
    }


def test_a_link_that_is_down_has_no_width(tree: Tree) -> None:
    function = add_function(tree, Function("0000:50:00.0", NVME, "nvme"))
    tree.write(f"{function}/current_link_width", 0)
    tree.write(f"{function}/current_link_speed", "Unknown\n")
    tree.write(f"{function}/max_link_width", 255)
    observed = read_values(open_source(pcie.sources, tree.roots, "pcie"))
    gone = {label.partition("{")[0] for label, value in observed.items() if value is None}
    assert gone == {f"storage.pcie.{name}" for name in ("width", "speed", "width_maximum")}


def test_a_card_plugged_in_later(tree: Tree) -> None:
    add_function(tree, CARD)
    source = open_source(pcie.sources, tree.roots, "pcie")
    add_function(tree, Function("0000:50:00.0", NVME, "nvme"))
    with pytest.raises(LayoutChanged):
        source.read()
    assert len(list(source.read())) == 8


def test_virtual_machines_have_neither(tree: Tree) -> None:
    tree.write("sys/devices/pci0000:00/0000:00:03.0/class", NETWORK)
    tree.link("sys/bus/pci/devices/0000:00:03.0", "../../../devices/pci0000:00/0000:00:03.0")
    for name in ("pcie", "aer"):
        with pytest.raises(Unsupported, match="no PCIe"):
            open_source(pcie.sources, tree.roots, name)


def test_speed_of_an_idle_gpu_is_no_harm_but_a_lost_lane_is() -> None:
    assert find("gpu.pcie.speed").harm is Harm.NEITHER
    assert find("gpu.pcie.width").harm is Harm.LOWER
    assert find("network.pcie.speed").harm is Harm.LOWER


def test_errors_are_counted_for_both_ends_of_a_link(tree: Tree) -> None:
    function = add_function(tree, CARD)
    add_errors(tree, function, BadTLP=3, RxErr=1)
    add_errors(tree, function.rpartition("/")[0], Timeout=2)
    with source_opened(pcie.sources, tree.roots, "aer") as source:
        observed = read_values(source)
    assert {label: value for label, value in observed.items() if value} == {
        "gpu.pcie.aer.correctable{0000:18:00.0 nvidia}": 4,
        "gpu.pcie.aer.correctable.bad_tlp{0000:18:00.0 nvidia}": 3,
        "gpu.pcie.aer.correctable.rx_err{0000:18:00.0 nvidia}": 1,
        "gpu.pcie.aer.correctable{0000:17:01.0 above nvidia}": 2,
        "gpu.pcie.aer.correctable.timeout{0000:17:01.0 above nvidia}": 2,
    }
    assert len(observed) == 6 + 3


def test_two_functions_of_a_card_share_their_port(tree: Tree) -> None:
    for number in range(2):
        add_function(tree, Function(f"0000:3b:00.{number}", NETWORK, "ice", port="0000:3a:00.0"))
    with source_opened(pcie.sources, tree.roots, "aer") as source:
        channels = source.channels
    instances = {channel.instance for channel in channels}
    assert instances == {"0000:3b:00.0 ice", "0000:3b:00.1 ice", "0000:3a:00.0 above ice"}
    assert len(channels) == len(set(channels))


def test_an_error_gets_a_column_by_name_with_its_first_event(tree: Tree) -> None:
    function = add_function(tree, CARD)
    total = "gpu.pcie.aer.nonfatal{0000:18:00.0 nvidia}"
    with source_opened(pcie.sources, tree.roots, "aer") as source:
        before = read_values(source)
        add_errors(tree, function, CmpltTO=1)
        for _ in range(2 * TURNS):
            observed = read_values(source)
    assert before[total] == 0
    assert observed[total] == 1
    assert len(observed) == len(before) + 2  # CmpltTO is in both files of uncorrected errors
    assert observed["gpu.pcie.aer.nonfatal.cmplt_to{0000:18:00.0 nvidia}"] == 1


def test_names_of_linux_4_19() -> None:
    text = "Receiver Error 2\nBad TLP 0\nRELAY_NUM Rollover 1\nTOTAL_ERR_COR 3\n"
    assert pcie.errors(text) == {
        "Receiver Error": 2, "Bad TLP": 0, "RELAY_NUM Rollover": 1, "": 3,
    }  # fmt: skip


def test_every_error_of_the_kernel_has_a_row() -> None:
    for owner, subsystem in (("gpu", Subsystem.GPU), ("network", Subsystem.NETWORK),
                             ("storage", Subsystem.STORAGE)):  # fmt: skip
        row = find(f"{owner}.pcie.aer.fatal.malf_tlp")
        assert (row.subsystem, row.harm) == (subsystem, Harm.HIGHER)
        assert row.metric_group == f"{owner}.pcie.aer.fatal"


@pytest.mark.parametrize(
    ("text", "tenths"),
    [("2.5 GT/s PCIe", 25), ("5.0 GT/s PCIe", 50), ("8.0 GT/s", 80), ("64.0 GT/s PCIe", 640),
     ("8 GT/s", 80), ("Unknown", None), ("Unknown speed", None), ("", None), ("-1.0 GT/s", None)],
)  # fmt: skip
def test_speeds(text: str, tenths: int | None) -> None:
    assert pcie.speed(text.encode()) == tenths


@pytest.mark.parametrize(
    ("text", "lanes"), [("16\n", 16), ("32", 32), ("0", None), ("63", None), ("255", None)]
)
def test_widths(text: str, lanes: int | None) -> None:
    assert pcie.width(text.encode()) == lanes


@given(st.binary(max_size=40))
def test_any_text_is_a_speed_a_width_or_missing(text: bytes) -> None:
    for parse in (pcie.speed, pcie.width):
        value = parse(text)
        assert value is None or value >= 0


@given(st.text(max_size=200))
def test_any_text_is_a_table_of_errors(text: str) -> None:
    assert all(isinstance(count, int) for count in pcie.errors(text).values())


@given(st.dictionaries(st.sampled_from(["RxErr", "BadTLP", "Rollover"]), st.integers(0, 2**63)))
def test_counts_come_back_as_written(counts: dict[str, int]) -> None:
    lines = [f"{name} {count}" for name, count in counts.items()]
    text = "\n".join([*lines, f"TOTAL_ERR_COR {sum(counts.values())}", ""])
    assert pcie.errors(text) == {**counts, "": sum(counts.values())}
