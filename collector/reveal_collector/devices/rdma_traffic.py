"""Files that count the bytes and packets of RDMA ports, which every driver names its own way.

The folder ``counters`` of a port has the names of the InfiniBand specification, where the driver
answers the performance management agent.  Others count in ``hw_counters`` only, whose names are
the driver's (drivers/infiniband/hw): of the port, or of the whole device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from reveal_collector.devices.rdma import RdmaPort, ib_ports
from reveal_collector.readers.sysfs_attributes import read_number, read_text

STANDARD, OF_DRIVER = "counters", "hw_counters"
_WORD, _FLIT = 4.0, 8.0  # bytes


class Spelling(NamedTuple):
    """One way to count something: the sum of these files in a folder, in units of ``scale``."""

    folder: str
    files: tuple[str, ...]
    scale: float = 1.0


def _own(*files: str, scale: float = 1.0) -> Spelling:
    return Spelling(OF_DRIVER, files, scale)


# metric -> the names of its files, the preferred ones first
SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "rx_bytes": (
        Spelling(STANDARD, ("port_rcv_data",), _WORD),
        _own("rx_bytes"),  # efa, bnxt_re, mana
        _own("ip4InOctets", "ip6InOctets"),  # irdma, i40iw
        _own("rx_bytes_cnt"),  # erdma
        _own("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"),  # ionic
        _own("rcvd_bytes"),  # rxe
        _own("RcvFlits", scale=_FLIT),  # hfi1
    ),
    "tx_bytes": (
        Spelling(STANDARD, ("port_xmit_data",), _WORD),
        _own("tx_bytes"),
        _own("ip4OutOctets", "ip6OutOctets"),
        _own("tx_bytes_cnt"),
        _own("tx_rdma_ucast_bytes", "tx_rdma_mcast_bytes"),
        _own("sent_bytes"),
        _own("XmitFlits", scale=_FLIT),
    ),
    "rx_packets": (
        Spelling(STANDARD, ("port_rcv_packets",)),
        _own("rx_pkts"),  # efa, bnxt_re
        _own("rx_packets"),  # mana
        _own("ip4InPkts", "ip6InPkts"),
        _own("ip4InSegs", "ip6InSegs"),  # cxgb4
        _own("rx_packets_cnt"),
        _own("rx_rdma_ucast_pkts", "rx_rdma_mcast_pkts"),
        _own("rx_pkt"),  # hns
        _own("rcvd_pkts"),
        _own("RcvPkts"),
    ),
    "tx_packets": (
        Spelling(STANDARD, ("port_xmit_packets",)),
        _own("tx_pkts"),
        _own("tx_packets"),
        _own("ip4OutPkts", "ip6OutPkts"),
        _own("ip4OutSegs", "ip6OutSegs"),
        _own("tx_packets_cnt"),
        _own("tx_rdma_ucast_pkts", "tx_rdma_mcast_pkts"),
        _own("tx_pkt"),
        _own("sent_pkts"),
        _own("XmitPkts"),
    ),
}
TRAFFIC_FILES = frozenset(
    file for spellings in SPELLINGS.values() for each in spellings for file in each.files
)


class TrafficCounter(NamedTuple):
    """What counts one metric of a port, or of a device: the sum of files, and their scale."""

    instance: str
    metric: str
    files: tuple[Path, ...]
    scale: float

    @property
    def is_of_driver(self) -> bool:
        """Whether these are counters of the driver, and not those of the specification."""
        return self.files[0].parent.name == OF_DRIVER


def traffic_counters(sys: Path) -> Iterator[TrafficCounter]:
    """Yield what counts the traffic of each port; of the whole device where no port has it."""
    by_device: dict[str, list[RdmaPort]] = {}
    for port in ib_ports(sys, addresses=False):
        by_device.setdefault(port.device, []).append(port)
    for ports in by_device.values():
        of_ports = [each for port in ports for each in _counters(port.path, port.name)]
        # counters of a device with one port are those of that port
        instance = ports[0].name if len(ports) == 1 else ports[0].device
        yield from of_ports or _counters(ports[0].path.parents[1], instance)


def refresh_seconds(counters: list[TrafficCounter]) -> float:
    """Return after how long the drivers ask their devices again: a read before then is cheap."""
    folders = {each.files[0].parent for each in counters if each.is_of_driver}
    lifespans = (read_number(folder / "lifespan") or 0 for folder in folders)
    return max(lifespans, default=0) / 1000


def _counters(folder: Path, instance: str) -> Iterator[TrafficCounter]:
    for metric, spellings in SPELLINGS.items():
        present = [each for each in spellings if (folder / each.folder / each.files[0]).exists()]
        # a driver may have a file that counts nothing: "N/A (no PMA)"
        counting = [each for each in present if _is_number(folder / each.folder / each.files[0])]
        for spelling in (counting or present)[:1]:
            files = (folder / spelling.folder / name for name in spelling.files)
            found = tuple(file for file in files if file.exists())
            yield TrafficCounter(instance, metric, found, spelling.scale)


def _is_number(file: Path) -> bool:
    return read_text(file).isdecimal()
