"""InfiniBand and RoCE ports: traffic, errors, congestion, state.

Kernel: Documentation/ABI/stable/sysfs-class-infiniband.  ``counters`` are those of the
InfiniBand specification's port counters; ``hw_counters`` are the driver's own and differ by card.
Data counters are in words of four bytes.  Counters too narrow for the link stick at their maximum
instead of wrapping: at its maximum a counter says nothing and is missing until it is cleared.

Each file may ask the card's firmware, which takes tens of microseconds or more.  So errors are
read by a thread of their own; traffic comes at every tick where all ports together are read
within the price of a fast source, and otherwise once a second by such a thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reveal_collector.devices.rdma import RdmaPort, ib_ports, rate, state_number
from reveal_collector.kernel.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Roots, Source
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

_WORD = 4.0
_TENTH_GBIT = 1e8
# the four that show what a port carries, 64 bits wide but on old cards
TRAFFIC = {
    "port_rcv_data": ("rx_bytes", _WORD), "port_xmit_data": ("tx_bytes", _WORD),
    "port_rcv_packets": ("rx_packets", 1.0), "port_xmit_packets": ("tx_packets", 1.0),
}  # fmt: skip
# bits of the specification's other port counters
_BITS = {
    "symbol_error": 16, "port_rcv_errors": 16, "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16, "link_error_recovery": 8, "link_downed": 8,
    "port_xmit_constraint_errors": 8, "port_rcv_constraint_errors": 8, "VL15_dropped": 16,
    "local_link_integrity_errors": 4, "excessive_buffer_overrun_errors": 4,
    "port_xmit_discards": 16, "port_xmit_wait": 32,
}  # fmt: skip
_SAME = {"unicast_rcv_packets", "unicast_xmit_packets", "lifespan"}  # said by others, or settings
_TRIES = 3


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "class/infiniband"
    absent = Unsupported("this host has no InfiniBand or RoCE port")

    def mark() -> object:
        return entries(folder)

    def part(name: str, files: Callable[[RdmaPort], Iterator[AttributeFile]]) -> AttributeSource:
        def find() -> Iterator[AttributeFile]:
            return (file for port in ib_ports(roots.sys, addresses=False) for file in files(port))

        return AttributeSource(name, Lane.SLOW, find, mark, absent)

    return [
        Traffic(part("infiniband", traffic)),
        BackgroundSource(part("infiniband-errors", others)),
    ]


def traffic(port: RdmaPort) -> Iterator[AttributeFile]:
    """Bytes and packets of a port."""
    for file, (name, scale) in TRAFFIC.items():
        column = channel(f"network.infiniband.{name}", port.name, scale)
        path = port.path / "counters" / file
        yield single_column(path, column, NotStuck(32, path))


def others(port: RdmaPort) -> Iterator[AttributeFile]:
    """State, rate, errors and the driver's own counters of a port."""
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
        if name not in TRAFFIC and name not in _SAME:
            column = channel(f"network.infiniband.{snake(name)}", port.name)
            path = port.path / "counters" / name
            yield single_column(path, column, NotStuck(_BITS.get(name, 64), path))
    for name in entries(port.path / "hw_counters")[0]:
        if name not in _SAME:
            column = channel(f"network.infiniband.hw.{snake(name)}", port.name)
            path = port.path / "hw_counters" / name
            yield single_column(path, column, NotStuck(64, path))


class NotStuck:
    """A reader of a counter that sticks at the largest number of so many bits; says it once."""

    def __init__(self, bits: int, path: Path) -> None:
        self._most = (1 << bits) - 1
        self._path = path
        self._said = False

    def __call__(self, data: bytes) -> int | None:
        value = int(data)
        if value != self._most:
            return value
        if not self._said:
            self._said = True
            log.warning("%s is at its maximum: it counts no more until cleared", self._path)
        return None


class Traffic:
    """The traffic counters, at every tick where that is cheap enough on this host."""

    name = "infiniband"

    def __init__(self, files: AttributeSource) -> None:
        self.lane = Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self._files = files
        self._via: Source = files

    def open(self) -> None:
        self._files.open()
        fast = price(self._files.read) <= FAST_MEDIAN_NS
        self.lane = Lane.FAST if fast else Lane.SLOW
        if not fast:
            self._via = BackgroundSource(self._files)
            self._via.open()
        self._learn()

    def read(self) -> Sequence[int | None]:
        try:
            return self._via.read()
        finally:
            if self.channels is not self._via.channels:
                self._learn()

    def close(self) -> None:
        self._via.close()
        self._via, self.channels = self._files, ()

    def _learn(self) -> None:
        self.channels = in_lane(self._via.channels, self.lane)


def price(read: Callable[[], object]) -> int:
    """What a reading costs (ns), the least of a few tries."""
    spent = []
    for _ in range(_TRIES):
        began = time.monotonic_ns()
        read()
        spent.append(time.monotonic_ns() - began)
    return min(spent)
