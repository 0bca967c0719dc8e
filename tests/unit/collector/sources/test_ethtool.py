"""Names of the drivers' counters, and the kernel's encoding of replies."""

from __future__ import annotations

import contextlib
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.devices import ethtool as card_io
from reveal_collector.devices.ethtool import Ethtool
from reveal_collector.kernel_interfaces.errors import ParseError, Unsupported
from reveal_collector.readers.source import Roots
from reveal_collector.sources import ethtool
from reveal_contract.catalogue import find
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values

MLX5 = {
    "rx_packets": 5, "rx_out_of_buffer": 7, "rx0_buff_alloc_err": 1, "rx_buff_alloc_err": 2,
    "rx_discards_phy": 3, "rx_prio0_discards": 9, "tx_pause_ctrl_phy": 4, "rx_prio3_pause": 11,
    "rx_prio4_pause": 1, "rx_prio3_pause_duration": 20, "link_down_events_phy": 1,
    "outbound_pci_stalled_rd": 99, "outbound_pci_stalled_rd_events": 6, "rx_symbol_err_phy": 8,
}  # fmt: skip
DRIVERS: dict[str, tuple[Mapping[str, int], dict[str, int]]] = {
    "mlx5": (MLX5, {
        "rx_no_buffer": 7, "rx_buffer_failures": 2, "rx_discards": 3, "tx_pauses": 4,
        "rx_priority_pauses": 12, "rx_paused_time": 20, "link_downs": 1, "pci_stalled_reads": 6,
        "rx_symbol_errors": 8,
    }),
    "virtio": (
        {"rx_queue_0_drops": 2, "rx_queue_1_drops": 3, "tx_queue_0_tx_timeouts": 1,
         "tx_queue_0_kicks": 9},
        {"rx_no_buffer": 5, "tx_timeouts": 1},
    ),
    "virtio, later": (
        {"rx0_drops": 2, "rx1_drops": 3, "tx0_timeouts": 1, "rx0_hw_drops": 4, "tx0_hw_drops": 6},
        {"rx_no_buffer": 5, "tx_timeouts": 1, "rx_discards": 4, "tx_discards": 6},
    ),
    "ena": (
        {"tx_timeout": 1, "wd_expired": 2, "bw_in_allowance_exceeded": 3,
         "pps_allowance_exceeded": 4, "conntrack_allowance_exceeded": 5,
         "queue_0_rx_page_alloc_fail": 6, "queue_1_rx_page_alloc_fail": 1},
        {"tx_timeouts": 1, "restarts": 2, "allowance.bandwidth_in": 3, "allowance.packets": 4,
         "allowance.connections": 5, "rx_buffer_failures": 7},
    ),
    "ixgbe": (
        {"rx_no_dma_resources": 1, "rx_missed_errors": 2, "alloc_rx_buff_failed": 3,
         "rx_flow_control_xoff": 4, "tx_flow_control_xoff": 5, "rx_crc_errors": 6},
        {"rx_no_buffer": 1, "rx_missed": 2, "rx_buffer_failures": 3, "rx_pauses": 4,
         "tx_pauses": 5, "rx_damaged": 6},
    ),
    "ice": (
        {"rx_dropped": 8, "rx_dropped.nic": 1, "rx_crc_errors.nic": 2, "link_xoff_rx.nic": 3},
        {"rx_no_buffer": 1, "rx_damaged": 2, "rx_pauses": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_a_driver_counts(driver: str) -> None:
    counters, meanings = DRIVERS[driver]
    parts = {name: ethtool.parts_of(name, counters) for name in ethtool.MEANINGS}
    assert {name: sum(found.values()) for name, found in parts.items() if found} == meanings
    columns = ethtool.columns_of("eth0", counters)
    assert len(columns) == len(meanings)


def test_every_meaning_has_a_row() -> None:
    for name in ethtool.MEANINGS:
        assert find(f"network.card.{name}").source == "ethtool"


def test_pauses_are_counted_in_microseconds() -> None:
    columns = ethtool.columns_of("eth0", {"rx_prio3_pause_duration": 20})
    assert {
        channel.label: value * channel.scale for channel, value in columns.items() if value
    } == {"network.card.rx_paused_time{eth0}": 20_000}


def test_other_queues_are_another_sum() -> None:
    few, many = (
        ethtool.columns_of("eth0", {f"rx_prio{n}_pause": 9 for n in range(count)})
        for count in (2, 3)
    )
    assert [channel.label for channel in few] == [channel.label for channel in many]
    assert few.keys() != many.keys()


@given(st.dictionaries(st.text(max_size=20), st.integers(0, 2**64 - 1), max_size=8))
def test_unknown_counters_are_ignored(counters: dict[str, int]) -> None:
    assert all(value is not None for value in ethtool.columns_of("eth0", counters).values())


def test_cards_are_interfaces_with_a_device(tree: Tree) -> None:
    tree.folder("sys/class/net/lo")
    tree.folder("sys/class/net/eth0/device")
    assert ethtool.cards(tree.roots.sys) == ["eth0"]


def test_cards_of_another_hosts_files_are_not_asked(tree: Tree) -> None:
    with pytest.raises(Unsupported, match="machine itself"):
        open_source(ethtool.sources, tree.roots, "ethtool")


def test_answers_as_the_kernel_packs_them() -> None:
    assert card_io.counters_of(struct.pack("=IIQI", 0x37, 0, 2, 17)) == 17
    assert card_io.counters_of(struct.pack("=IIQI", 0x37, 0, 0, 0)) == 0
    names = struct.pack("=III32s32s", 0x1B, 1, 2, b"rx_packets", b"a" * 32)
    assert card_io.names_of(names) == ["rx_packets", "a" * 32]
    assert list(card_io.values_of(struct.pack("=IIQQ", 0x1D, 2, 5, 2**64 - 1))) == [5, 2**64 - 1]
    queues = card_io.queues_of((0x3C, 0, 0, 1, 63, 0, 0, 1, 32))
    assert (queues.current, queues.maximum) == (32, 63)


def test_answers_that_claim_more_than_they_hold_are_refused() -> None:
    with pytest.raises(ParseError, match="3 names"):
        card_io.names_of(struct.pack("=III", 0x1B, 1, 3))
    with pytest.raises(ParseError, match="9 counters"):
        card_io.values_of(struct.pack("=IIQ", 0x1D, 9, 1))
    with pytest.raises(ParseError, match="counters"):
        card_io.counters_of(struct.pack("=IIQI", 0x37, 0, 2, 2**31))


@given(st.binary(min_size=12, max_size=120))
def test_any_answer_is_names_and_counters_or_refused(answer: bytes) -> None:
    for parse in (card_io.names_of, card_io.values_of):
        with contextlib.suppress(ParseError):
            parse(answer)


def live_card() -> str:
    names = ethtool.cards(Roots().sys)
    if not names:
        pytest.skip("this machine has no network card")
    return names[0]


def test_the_card_of_this_machine_is_identified() -> None:
    tool = Ethtool()
    try:
        card = tool.card(live_card())
    except OSError as error:
        pytest.skip(f"the card does not answer: {error}")
    finally:
        tool.close()
    driver = Path("/sys/class/net") / live_card() / "device/driver"
    assert card.driver == driver.resolve().name
    for pair in (card.rx_ring, card.queues):
        assert pair is None or 0 < pair.current <= pair.maximum


def test_this_machines_counters_are_those_of_ethtool() -> None:
    name = live_card()
    try:
        done = subprocess.run(["ethtool", "-S", name], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no ethtool to compare with, or nothing is counted")
    tool = Ethtool()
    try:
        counters = tool.statistics(name)
    finally:
        tool.close()
    listed = [line.rpartition(":")[0].strip() for line in done.stdout.splitlines()[1:]]
    assert list(counters) == listed


def test_the_loopback_interface_counts_nothing() -> None:
    tool = Ethtool()
    try:
        counted = tool.statistics("lo")
    except OSError:
        counted = {}
    finally:
        tool.close()
    assert counted == {}


def test_this_machines_card_as_a_source() -> None:
    live_card()
    try:
        source = open_source(ethtool.sources, Roots(), "ethtool")
    except Unsupported as refusal:
        pytest.skip(refusal.reason)
    before, after = read_values(source), read_values(source)
    source.close()
    assert set(before) == set(after)
    assert all(after[label] >= before[label] for label in before)  # type: ignore[operator]


def test_a_card_that_does_not_exist_is_an_error() -> None:
    tool = Ethtool()
    with pytest.raises(OSError, match="No such device"):
        tool.statistics("nosuchcard0")
    tool.close()
