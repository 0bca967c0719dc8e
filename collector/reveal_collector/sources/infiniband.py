"""InfiniBand and RoCE ports: traffic, errors, congestion, state.

Kernel: Documentation/ABI/stable/sysfs-class-infiniband.  ``counters`` are the port counters of
the InfiniBand specification; ``hw_counters`` are defined by the driver and differ by card.  Data
counters are in words of four bytes.  A counter that is too narrow for the link stays at its
maximum instead of wrapping.  There it has no meaning, so its value is missing until it is cleared.

A read may query the firmware of the card, which takes tens of microseconds or more.  Therefore
a thread of its own reads the errors.  Traffic is read every tick if reading all ports is cheap
enough for a fast source, else once a second by such a thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reveal_collector.devices.rdma import RdmaPort, ib_ports, rate, state_number
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Outage, Roots, Source
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    entries,
    in_lane,
    single_column,
)
from reveal_collector.readers.textfile import channel
from reveal_collector.sampling.feed import FAST_MEDIAN_NS
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.names import snake

log = logging.getLogger(__name__)

_WORD_BYTES = 4.0
_TENTH_GBIT = 1e8
# the traffic counters, 64 bits wide except on old cards
TRAFFIC = {
    "port_rcv_data": ("rx_bytes", _WORD_BYTES), "port_xmit_data": ("tx_bytes", _WORD_BYTES),
    "port_rcv_packets": ("rx_packets", 1.0), "port_xmit_packets": ("tx_packets", 1.0),
}  # fmt: skip
# widths in bits of the other port counters of the specification
_BITS = {
    "symbol_error": 16, "port_rcv_errors": 16, "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16, "link_error_recovery": 8, "link_downed": 8,
    "port_xmit_constraint_errors": 8, "port_rcv_constraint_errors": 8, "VL15_dropped": 16,
    "local_link_integrity_errors": 4, "excessive_buffer_overrun_errors": 4,
    "port_xmit_discards": 16, "port_xmit_wait": 32,
}  # fmt: skip
_REDUNDANT = {
    "unicast_rcv_packets",
    "unicast_xmit_packets",
    "lifespan",
}  # sums of other counters, or settings
_COST_READS = 3


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "class/infiniband"
    absent = Unsupported("this host has no InfiniBand or RoCE port")

    def layout_state() -> object:
        return entries(folder)

    def part(name: str, files: Callable[[RdmaPort], Iterator[AttributeFile]]) -> AttributeSource:
        def find() -> Iterator[AttributeFile]:
            return (file for port in ib_ports(roots.sys, addresses=False) for file in files(port))

        return AttributeSource(name, Lane.SLOW, find, layout_state, absent)

    return [
        PortTraffic(part("infiniband", traffic)),
        BackgroundSource(part("infiniband-errors", errors)),
    ]


def traffic(port: RdmaPort) -> Iterator[AttributeFile]:
    """Yield bytes and packets of a port."""
    for file, (name, scale) in TRAFFIC.items():
        column = channel(f"network.infiniband.{name}", port.name, scale)
        path = port.path / "counters" / file
        yield single_column(path, column, SaturatingCounter(32, path))


def errors(port: RdmaPort) -> Iterator[AttributeFile]:
    """Yield state, rate, errors and the driver's own counters of a port."""
    yield single_column(
        port.path / "state", channel("network.infiniband.state", port.name), state_number
    )
    yield single_column(
        port.path / "phys_state",
        channel("network.infiniband.phys_state", port.name), state_number,
    )  # fmt: skip
    yield single_column(
        port.path / "rate", channel("network.infiniband.rate", port.name, _TENTH_GBIT), rate
    )
    for name in entries(port.path / "counters")[0]:
        if name not in TRAFFIC and name not in _REDUNDANT:
            column = channel(f"network.infiniband.{snake(name)}", port.name)
            path = port.path / "counters" / name
            yield single_column(path, column, SaturatingCounter(_BITS.get(name, 64), path))
    for name in entries(port.path / "hw_counters")[0]:
        if name not in _REDUNDANT:
            column = channel(f"network.infiniband.hw.{snake(name)}", port.name)
            path = port.path / "hw_counters" / name
            yield single_column(path, column, SaturatingCounter(64, path))


class SaturatingCounter:
    """Parser of a counter that stays at the maximum of its width; it warns once."""

    def __init__(self, bits: int, path: Path) -> None:
        self._maximum = (1 << bits) - 1
        self._path = path
        self._warned = False

    def __call__(self, data: bytes) -> int | None:
        value = int(data)
        if value != self._maximum:
            return value
        if not self._warned:
            self._warned = True
            log.warning("%s is at its maximum: it does not count until it is cleared", self._path)
        return None


class PortTraffic:
    """The traffic counters, read every tick if this is cheap enough on this host."""

    name = "infiniband"

    def __init__(self, files: AttributeSource) -> None:
        self.lane = Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self._files = files
        self._active: Source = files

    def open(self) -> None:
        self._files.open()
        fast = read_cost_ns(self._files.read) <= FAST_MEDIAN_NS
        self.lane = Lane.FAST if fast else Lane.SLOW
        if not fast:
            self._active = BackgroundSource(self._files)
            self._active.open()
        self._update_channels()

    def read(self) -> Sequence[int | None]:
        try:
            return self._active.read()
        finally:
            if self.channels is not self._active.channels:
                self._update_channels()

    def outage(self) -> Outage | None:
        """Return the outage of the thread that reads the ports, if one does."""
        active = self._active
        return active.outage() if isinstance(active, BackgroundSource) else None

    def close(self) -> None:
        self._active.close()
        self._active, self.channels = self._files, ()

    def _update_channels(self) -> None:
        self.channels = in_lane(self._active.channels, self.lane)


def read_cost_ns(read: Callable[[], object]) -> int:
    """Return the lowest cost of a few reads, in ns."""
    costs_ns = []
    for _ in range(_COST_READS):
        started_ns = time.monotonic_ns()
        read()
        costs_ns.append(time.monotonic_ns() - started_ns)
    return min(costs_ns)
