"""Drops, pauses and stalls inside network cards, which no counter of the kernel shows.

Every driver names its own counters (``ethtool -S``), so a table of patterns gives their meaning.
If several counters mean the same, the first pattern that matches is used: the total of a card
before the sum over its queues.  Counters that match no pattern are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from reveal_collector.devices.ethtool import Ethtool
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sums import identified
from reveal_collector.readers.sysfs_attributes import Snapshot, SnapshotSource, entries
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel

_US = 1e3  # microseconds in ns
# counter of a queue: rx0_drops, rx_queue_0_drops, queue_0_rx_page_alloc_fail, tx_drops[0]
_RX = r"(?:rx_?(?:queue_)?\d+_|queue_\d+_rx_)"
_TX = r"(?:tx_?(?:queue_)?\d+_(?:tx_)?|queue_\d+_tx_)"
_OF_QUEUE = r"\[\d+\]"
# metric -> scale, and patterns of the names that drivers use, the preferred one first
MEANINGS: dict[str, tuple[float, tuple[str, ...]]] = {
    "rx_no_buffer": (1, (
        r"rx_out_of_buffer", r"rx_no_buffer_count", r"rx_no_dma_resources", r"rx_nodesc_drops",
        r"rx_nodesc_drop_cnt", r"port\.rx_dropped", r"rx_dropped\.nic",
        rf"rx_no_buffers_posted{_OF_QUEUE}", rf"{_RX}drops",
    )),
    "rx_discards": (1, (
        r"rx_discards_phy", r"port\.rx_discards", r"rx_total_discard_pkts", r"rx_discards",
        rf"rx_queue_drop_cnt{_OF_QUEUE}", rf"{_RX}hw_drops", r"rx_drops", r"rx_prio\d_discards",
    )),
    "rx_missed": (1, (r"rx_missed_errors", r"rx_missed", r"rx_steer_missed_packets")),
    "rx_buffer_failures": (1, (
        r"rx_buff_alloc_err", r"rx_alloc_failed", r"alloc_rx_buff_failed", r"rx_alloc_fail",
        r"rx_buf_alloc_fail",
        rf"{_RX}page_alloc_fail",
    )),
    "rx_damaged": (1, (
        r"rx_crc_errors_phy", r"port\.rx_crc_errors", r"rx_crc_errors(?:\.nic)?",
        r"rx_fcs_err_frames",
    )),
    "rx_symbol_errors": (1, (
        r"rx_symbol_err_phy", r"rx_pcs_symbol_err_phy", r"rx_symbol_errors?",
    )),
    "rx_corrected_bits": (1, (r"rx_corrected_bits_phy", r"rx_corrected_bits")),
    "rx_ecn_marked": (1, (r"rx_ecn_mark", r"rx_congn_sigs")),
    "tx_discards": (1, (
        r"tx_discards_phy", r"tx_total_discard_pkts", r"tx_hw_drops", r"tx_dropped\.nic",
        r"tx_drops", rf"{_TX}hw_drops",
    )),
    "tx_timeouts": (1, (
        r"tx_timeout_count", r"tx_timeouts?", rf"{_TX}timeouts?",
    )),
    "rx_pauses": (1, (
        r"rx_pause_ctrl_phy", r"rx_pause_frames", r"rx_pause", r"rx_flow_control_xoff",
        r"port\.link_xoff_rx", r"link_xoff_rx(?:\.nic)?",
    )),
    "tx_pauses": (1, (
        r"tx_pause_ctrl_phy", r"tx_pause_frames", r"tx_pause", r"tx_flow_control_xoff",
        r"port\.link_xoff_tx", r"link_xoff_tx(?:\.nic)?",
    )),
    "rx_priority_pauses": (1, (r"rx_prio\d_pause", r"rx_pfc_ena_frames_pri\d")),
    "tx_priority_pauses": (1, (r"tx_prio\d_pause", r"tx_pfc_ena_frames_pri\d")),
    "rx_paused_time": (_US, (r"rx_prio\d_pause_duration", r"rx_global_pause_duration")),
    "tx_paused_time": (_US, (r"tx_prio\d_pause_duration", r"tx_global_pause_duration")),
    "link_downs": (1, (r"link_down_events_phy", r"link_down_events")),
    "pci_stalled_reads": (1, (r"outbound_pci_stalled_rd_events",)),
    "pci_stalled_writes": (1, (r"outbound_pci_stalled_wr_events",)),
    "pci_overflows": (1, (r"outbound_pci_buffer_overflow",)),
    "pci_signal_errors": (1, (r"rx_pci_signal_integrity",)),
    "allowance.bandwidth_in": (1, (r"bw_in_allowance_exceeded",)),
    "allowance.bandwidth_out": (1, (r"bw_out_allowance_exceeded",)),
    "allowance.packets": (1, (r"pps_allowance_exceeded",)),
    "allowance.connections": (1, (r"conntrack_allowance_exceeded",)),
    "allowance.link_local": (1, (r"linklocal_allowance_exceeded",)),
    "restarts": (1, (r"wd_expired", r"tx_recover", r"recover")),
}  # fmt: skip
_PATTERNS = {
    name: tuple(re.compile(pattern) for pattern in patterns)
    for name, (_, patterns) in MEANINGS.items()
}


def sources(roots: Roots) -> list[Source]:
    return [_CardCounters(roots)]


class _CardCounters(SnapshotSource):
    """The cards of the network namespace of the process, listed again at each read."""

    def __init__(self, roots: Roots) -> None:
        super().__init__("ethtool", self._read_cards, Unsupported(
            "no network card has internal counters", "use a physical card, or a newer driver",
        ))  # fmt: skip
        self._roots = roots
        self._tool: Ethtool | None = None

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("network cards can be queried only on the running machine itself")
        self.close()
        self._tool = Ethtool()
        super().open()

    def close(self) -> None:
        if self._tool is not None:
            self._tool.close()
        self._tool = None
        super().close()

    def _read_cards(self) -> Snapshot:
        columns: dict[Channel, int | None] = {}
        for name in cards(self._roots.sys):
            with suppress(OSError):  # the card was removed, or its driver has no counters
                if self._tool is not None:
                    columns |= columns_of(name, self._tool.statistics(name))
        return Snapshot(columns)


def cards(sys: Path) -> list[str]:
    """Return the interfaces of real devices, including those of virtual machines."""
    folder = sys / "class/net"
    return [name for name in entries(folder)[0] if (folder / name / "device").exists()]


def columns_of(card: str, counters: Mapping[str, int]) -> dict[Channel, int | None]:
    """Return the columns of a card's counters by the table of meanings."""
    found: dict[Channel, int | None] = {}
    for name, (scale, _) in MEANINGS.items():
        parts = parts_of(name, counters)
        if parts:
            column = channel(f"network.card.{name}", card, scale)
            found[identified(column, parts)] = sum(parts.values())
    return found


def parts_of(name: str, counters: Mapping[str, int]) -> dict[str, int]:
    """Return the counters that match the first pattern with a match: queues, priorities, ports."""
    for pattern in _PATTERNS[name]:
        matching = {key: value for key, value in counters.items() if pattern.fullmatch(key)}
        if matching:
            return matching
    return {}
