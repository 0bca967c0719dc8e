"""InfiniBand and RoCE devices as their driver (mlx5) shows them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from support.hosts.tree import Tree, rising

_ERRORS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
    "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_discards",
    "port_xmit_constraint_errors", "port_rcv_constraint_errors", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors", "VL15_dropped", "port_xmit_wait",
)  # fmt: skip
_PACKETS = ("port_rcv_packets", "port_xmit_packets", "unicast_rcv_packets",
            "unicast_xmit_packets", "multicast_rcv_packets", "multicast_xmit_packets")  # fmt: skip
_HARDWARE = (
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "np_cnp_sent",
    "np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence", "packet_seq_err",
    "req_cqe_error", "req_remote_access_errors", "resp_cqe_flush_error", "rnr_nak_retry_err",
    "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "rp_cnp_handled",
    "rp_cnp_ignored", "rx_atomic_requests", "rx_icrc_encapsulated", "rx_read_requests",
    "rx_write_requests",
)  # fmt: skip
_LIVE = {"ACTIVE": "4: ACTIVE", "DOWN": "1: DOWN", "INIT": "2: INIT"}


@dataclass(frozen=True)
class Adapter:
    """One device with its ports; a RoCE one lends ``netdev`` and its ``ip``."""

    name: str = "mlx5_0"
    folder: str = "sys/devices/pci0000:18/0000:18:00.0"  # the PCI function it is
    ports: int = 1
    ethernet: bool = False
    netdev: str = ""
    ip: str = ""
    rate: str = "400 Gb/sec (4X NDR)"
    bytes_a_second: int = 40_000_000
    hardware: bool = True  # whether the driver has counters of its own


def add_adapter(tree: Tree, adapter: Adapter) -> str:
    """Gives the folder of the device's ports."""
    folder = f"{adapter.folder}/infiniband/{adapter.name}"
    tree.link(f"sys/class/infiniband/{adapter.name}", "../../" + folder.removeprefix("sys/"))
    tree.link(f"{folder}/device", "../..")
    tree.write(f"{folder}/node_type", "1: CA\n")
    tree.write(f"{folder}/fw_ver", "28.39.3004\n")
    for number in range(1, adapter.ports + 1):
        _port(tree, f"{folder}/ports/{number}", adapter)
        if not adapter.ethernet and adapter.netdev:
            netdev = f"{adapter.folder}/net/{adapter.netdev if number == 1 else f'ib{number}'}"
            tree.write(f"{netdev}/dev_port", number - 1)
    return f"{folder}/ports"


def _port(tree: Tree, folder: str, adapter: Adapter) -> None:
    tree.write(f"{folder}/link_layer", ("Ethernet" if adapter.ethernet else "InfiniBand") + "\n")
    tree.write(f"{folder}/state", _LIVE["ACTIVE"] + "\n")
    tree.write(f"{folder}/phys_state", "5: LinkUp\n")
    tree.write(f"{folder}/rate", adapter.rate + "\n")
    counters = f"{folder}/counters"
    for name in _ERRORS:
        tree.write(f"{counters}/{name}", 0)
    for name in ("port_rcv_data", "port_xmit_data"):
        tree.write(f"{counters}/{name}", rising(adapter.bytes_a_second / 4, 10**9))
    for name in _PACKETS:
        tree.write(f"{counters}/{name}", rising(adapter.bytes_a_second / 4096, 10**6))
    if adapter.hardware:
        tree.write(f"{folder}/hw_counters/lifespan", 10)
        for name in _HARDWARE:
            tree.write(f"{folder}/hw_counters/{name}", 0)
    _gids(tree, folder, adapter)


def _gids(tree: Tree, folder: str, adapter: Adapter) -> None:
    """The first entries of the table; unused ones have no interface (the kernel says EINVAL)."""
    local = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
    entries = [(local, "IB/RoCE v1"), (local, "RoCE v2")] if adapter.ethernet else [(local, "")]
    if adapter.ip:
        mapped = int(ipaddress.IPv4Address(adapter.ip)) | 0xFFFF << 32
        gid = ipaddress.IPv6Address(mapped).exploded
        entries += [(gid, "IB/RoCE v1"), (gid, "RoCE v2")]
    for number, (gid, kind) in enumerate(entries):
        tree.write(f"{folder}/gids/{number}", gid + "\n")
        if adapter.ethernet:
            tree.write(f"{folder}/gid_attrs/ndevs/{number}", adapter.netdev + "\n")
            tree.write(f"{folder}/gid_attrs/types/{number}", kind + "\n")
    tree.write(f"{folder}/gids/{len(entries)}", "0000:" * 7 + "0000\n")
