"""Catalogue rows: PCIe links, memory errors, internal counters of network cards and AMD GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_OWNERS = {
    "gpu": (Subsystem.GPU, Scope.GPU, "GPU"),
    "network": (Subsystem.NETWORK, Scope.NIC, "network card"),
    "storage": (Subsystem.STORAGE, Scope.DISK, "NVMe drive"),
}
_ECC = partial(
    Metric, unit="errors", kind=Kind.COUNTER, subsystem=Subsystem.MEMORY, scope=Scope.NODE,
    source="edac", lane=Lane.SLOW, quantum=1, harm=Harm.HIGHER, role=Role.EVENT,
)  # fmt: skip
_CORRECTED = partial(_ECC, quantum=5, weight=0.5, family="memory.ecc.correctable")
_LOST = partial(_ECC, family="memory.ecc.uncorrectable")
_CARD = partial(
    Metric, unit="packets", kind=Kind.COUNTER, subsystem=Subsystem.NETWORK, scope=Scope.NIC,
    source="ethtool", lane=Lane.RARE, quantum=3, harm=Harm.HIGHER,
)  # fmt: skip
_EVENTS = partial(_CARD, unit="events", quantum=1)
_ALLOWANCE = partial(_CARD, family="network.card.allowance")
_RAS = partial(
    Metric, unit="errors", kind=Kind.COUNTER, subsystem=Subsystem.GPU, scope=Scope.GPU,
    source="amdgpu", lane=Lane.SLOW, harm=Harm.HIGHER, role=Role.EVENT,
)  # fmt: skip

_MEMORY = (
    _CORRECTED("memory.ecc.correctable", origin="edac mc ce_count",
               meaning="Corrected memory errors, by memory controller"),
    _LOST("memory.ecc.uncorrectable", origin="edac mc ue_count",
          meaning="Uncorrected memory errors, by memory controller"),
    _CORRECTED("memory.ecc.correctable_unplaced", origin="edac mc ce_noinfo_count",
               meaning="Corrected memory errors of an unknown module"),
    _LOST("memory.ecc.uncorrectable_unplaced", origin="edac mc ue_noinfo_count",
          meaning="Uncorrected memory errors of an unknown module"),
    _CORRECTED("memory.ecc.dimm.correctable", origin="edac dimm_ce_count",
               meaning="Corrected memory errors of one module: the module to replace"),
    _LOST("memory.ecc.dimm.uncorrectable", origin="edac dimm_ue_count",
          meaning="Uncorrected memory errors of one module"),
)  # fmt: skip

_CARDS = (
    _CARD("network.card.rx_no_buffer", origin="rx_out_of_buffer, rx_no_dma_resources",
          meaning="Packets dropped in the card because the host provided no buffer in time"),
    _CARD("network.card.rx_discards", origin="rx_discards_phy, rx_discards",
          meaning="Packets dropped in the card because its own buffers were full"),
    _CARD("network.card.rx_missed", origin="rx_missed_errors",
          meaning="Packets that the card counts as missed"),
    _CARD("network.card.rx_buffer_failures", unit="events",
          origin="rx_buff_alloc_err, rx_alloc_failed",
          meaning="Times that the driver got no memory for receive buffers"),
    _CARD("network.card.rx_damaged", origin="rx_crc_errors_phy, rx_crc_errors",
          meaning="Packets that the port received with a wrong checksum"),
    _CARD("network.card.rx_symbol_errors", unit="errors", origin="rx_symbol_err_phy",
          quantum=10, meaning="Damaged symbols on the wire, caused by a bad cable or module"),
    _CARD("network.card.rx_corrected_bits", unit="bits", origin="rx_corrected_bits_phy",
          quantum=1e5, harm=Harm.NEITHER,
          meaning="Bits fixed by error correction, which is normal on fast links"),
    _CARD("network.card.rx_ecn_marked", origin="rx_ecn_mark", quantum=50, harm=Harm.NEITHER,
          meaning="Packets that the card marked because of congestion"),
    _CARD("network.card.tx_discards", origin="tx_discards_phy, tx_drops",
          meaning="Packets dropped in the card instead of sent"),
    _EVENTS("network.card.tx_timeouts", origin="tx_timeout, tx_timeouts",
            meaning="Times that a send queue stopped and the driver had to reset it"),
    _CARD("network.card.rx_pauses", unit="frames", origin="rx_pause_ctrl_phy, rx_pause",
          quantum=50, meaning="Pause frames received: the switch asks this card to stop sending"),
    _CARD("network.card.tx_pauses", unit="frames", origin="tx_pause_ctrl_phy, tx_pause",
          quantum=50, meaning="Pause frames sent: the host is too slow"),
    _CARD("network.card.rx_priority_pauses", unit="frames", origin="rx_prioN_pause",
          quantum=50, weight=0.5, meaning="Pause frames of one priority received from the switch"),
    _CARD("network.card.tx_priority_pauses", unit="frames", origin="tx_prioN_pause", quantum=50,
          meaning="Pause frames of one priority sent: the host is too slow"),
    _CARD("network.card.rx_paused_time", unit="ns", origin="rx_prioN_pause_duration",
          quantum=5e6, family="network.card.rx_priority_pauses",
          meaning="Time that the switch paused this card, over all priorities"),
    _CARD("network.card.tx_paused_time", unit="ns", origin="tx_prioN_pause_duration",
          quantum=5e6, family="network.card.tx_priority_pauses",
          meaning="Time that this card paused the switch, over all priorities"),
    _EVENTS("network.card.link_downs", origin="link_down_events_phy",
            meaning="Times that the port lost its link"),
    _EVENTS("network.card.pci_stalled_reads", origin="outbound_pci_stalled_rd_events",
            quantum=10, meaning="Seconds in which the card waited for PCIe to read"),
    _EVENTS("network.card.pci_stalled_writes", origin="outbound_pci_stalled_wr_events",
            quantum=10, meaning="Seconds in which the card waited for PCIe to write"),
    _CARD("network.card.pci_overflows", origin="outbound_pci_buffer_overflow",
          meaning="Packets dropped because PCIe did not accept them in time"),
    _EVENTS("network.card.pci_signal_errors", origin="rx_pci_signal_integrity",
            meaning="Errors of the PCIe link that the card detected"),
    _ALLOWANCE("network.card.allowance.bandwidth_in", origin="bw_in_allowance_exceeded",
               meaning="Packets delayed because the incoming bandwidth of the machine type "
                       "was used up"),
    _ALLOWANCE("network.card.allowance.bandwidth_out", origin="bw_out_allowance_exceeded",
               meaning="Packets delayed because the outgoing bandwidth of the machine type "
                       "was used up"),
    _ALLOWANCE("network.card.allowance.packets", origin="pps_allowance_exceeded",
               meaning="Packets delayed because the packet rate of the machine type was used up"),
    _ALLOWANCE("network.card.allowance.connections", origin="conntrack_allowance_exceeded",
               meaning="Packets dropped because the machine type cannot track more connections"),
    _ALLOWANCE("network.card.allowance.link_local", origin="linklocal_allowance_exceeded",
               meaning="Packets to services of the provider (DNS, metadata, time) that were "
                       "dropped"),
    _EVENTS("network.card.restarts", origin="wd_expired, recover",
            meaning="Times that the driver restarted the card"),
)  # fmt: skip

_BLOCKS = (
    _RAS("gpu.ras.corrected", quantum=5, weight=0.5, origin="ras/BLOCK_err_count ce",
         meaning="Corrected errors in one block of the GPU other than its memory"),
    _RAS("gpu.pcie.speed_share", unit="ppm", kind=Kind.RATIO, source="derived",
         lane=Lane.DERIVED, quantum=50_000, harm=Harm.LOWER, role=Role.DYNAMIC,
         origin="pcie.link.gen.current / pcie.link.gen.max",
         meaning="PCIe speed of a busy GPU as a share of the maximum of both ends, per million"),
    _RAS("gpu.ras.uncorrected", quantum=1, origin="ras/BLOCK_err_count ue",
         meaning="Uncorrected errors in one block of the GPU"),
)  # fmt: skip


def _links(owner: str) -> tuple[Metric, ...]:
    """Return the rows of the PCIe link of a device; the width of a GPU is a row of NVML."""
    subsystem, scope, label = _OWNERS[owner]
    link = partial(
        Metric, kind=Kind.STATE, subsystem=subsystem, scope=scope, source="pcie",
        lane=Lane.RARE, quantum=1,
    )  # fmt: skip
    width = (
        link(f"{owner}.pcie.width", unit="lanes", origin="current_link_width", harm=Harm.LOWER,
             meaning=f"PCIe lanes in use between {label} and host"),
        link(f"{owner}.pcie.width_maximum", unit="lanes", origin="max_link_width",
             role=Role.STATIC, meaning=f"PCIe lanes that both {label} and port support"),
    )  # fmt: skip
    speed = (
        link(f"{owner}.pcie.speed", unit="transfers/s", quantum=1e9, origin="current_link_speed",
             harm=Harm.NEITHER if owner == "gpu" else Harm.LOWER,
             meaning=f"PCIe speed of each lane of the {label}; an idle GPU slows its link down "
             "to save power" if owner == "gpu" else f"PCIe speed of each lane of the {label}"),
        link(f"{owner}.pcie.speed_maximum", unit="transfers/s", quantum=1e9,
             origin="max_link_speed", role=Role.STATIC,
             meaning=f"PCIe speed that both {label} and port support"),
    )  # fmt: skip
    lanes = link(
        f"{owner}.pcie.width_share", unit="ppm", kind=Kind.RATIO, source="derived",
        lane=Lane.DERIVED, quantum=50_000, origin="current_link_width / max_link_width",
        harm=Harm.LOWER, family=f"{owner}.pcie.width",
        meaning=f"PCIe lanes of the {label} in use, as a share of the maximum of both ends, "
        "per million",
    )  # fmt: skip
    return (*speed, lanes) if owner == "gpu" else (*width, *speed, lanes)


def _aer(name: str) -> Metric | None:
    """Return the row of ``OWNER.pcie.aer.SEVERITY[.ERROR]``: totals, and errors by their names."""
    owner, _, rest = name.partition(".pcie.aer.")
    severity, dot, error = rest.partition(".")
    if owner not in _OWNERS or severity not in _AER or "." in error or bool(dot) != bool(error):
        return None
    subsystem, scope, label = _OWNERS[owner]
    total, quantum, weight, description = _AER[severity]
    return Metric(
        name, "errors", Kind.COUNTER, subsystem, scope, "aer", Lane.SLOW,
        f"aer_dev_{severity} {error or total}",
        f"{description} on the PCIe link of the {label}" + (f": {error}" if error else ""),
        quantum=quantum, harm=Harm.HIGHER, weight=weight, role=Role.EVENT,
        family=f"{owner}.pcie.aer.{severity}",
    )  # fmt: skip


_AER = {
    "correctable": ("TOTAL_ERR_COR", 5.0, 0.5, "Corrected errors"),
    "nonfatal": ("TOTAL_ERR_NONFATAL", 1.0, 1.0, "Nonfatal errors (lost transactions)"),
    "fatal": ("TOTAL_ERR_FATAL", 1.0, 1.0, "Fatal errors (unreliable link)"),
}
_TOTALS = tuple(
    row for owner in _OWNERS for kind in _AER if (row := _aer(f"{owner}.pcie.aer.{kind}"))
)
ROWS: tuple[Metric, ...] = (
    *_MEMORY, *_CARDS, *_BLOCKS, *(row for owner in _OWNERS for row in _links(owner)), *_TOTALS,
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (_aer,)
