"""InfiniBand and RoCE ports: traffic, errors, congestion, state.

Kernel: Documentation/ABI/stable/sysfs-class-infiniband.  ``counters`` are the port counters of
the InfiniBand specification; ``hw_counters`` are defined by the driver and differ by card.  A
counter that is too narrow for the link stays at its maximum instead of wrapping.  There it has no
meaning, so its value is missing until it is cleared.

A read may query the firmware of the card, which takes tens of microseconds or more.  Therefore
a thread of its own reads the errors.  Traffic is read every tick if reading all ports is cheap
enough for a fast source, else once a second by such a thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reveal_collector.devices.rdma import RdmaPort, ib_ports, rate, state_number
from reveal_collector.devices.rdma_traffic import (
    OF_DRIVER,
    TRAFFIC_FILES,
    refresh_seconds,
    traffic_counters,
)
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
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Harm, Lane
from reveal_contract.names import snake

log = logging.getLogger(__name__)

_TENTH_GBIT = 1e8
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
_MAX_PAUSE_S = 0.1
_ABSENT = Unsupported("this host has no InfiniBand or RoCE port")


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "class/infiniband"

    def layout_state() -> object:
        return entries(folder)

    def part(name: str, files: Callable[[Path], Iterator[AttributeFile]]) -> AttributeSource:
        return AttributeSource(name, Lane.SLOW, lambda: files(roots.sys), layout_state, _ABSENT)

    return [
        PortTraffic(part("infiniband", traffic), roots.sys),
        BackgroundSource(part("infiniband-errors", errors)),
    ]


def traffic(sys: Path) -> Iterator[AttributeFile]:
    """Yield bytes and packets of each port."""
    for counter in traffic_counters(sys):
        first, *others = counter.files
        column = channel(f"network.infiniband.{counter.metric}", counter.instance, counter.scale)
        bits = 64 if counter.is_of_driver else 32
        parse = CounterSum([SaturatingCounter(bits, file) for file in counter.files])
        yield replace(single_column(first, column, parse), others=tuple(others))


def errors(sys: Path) -> Iterator[AttributeFile]:
    """Yield state, rate, errors and the driver's own counters of each port and device."""
    of_ports: dict[str, set[str]] = {}
    for port in ib_ports(sys, addresses=False):
        yield from _port_errors(port)
        of_ports.setdefault(port.device, set()).update(entries(port.path / OF_DRIVER)[0])
    for device, names in of_ports.items():
        yield from _device_errors(sys / "class/infiniband" / device, names)


def _device_errors(device: Path, of_ports: Collection[str]) -> Iterator[AttributeFile]:
    """Yield the errors that the driver counts for the whole device; some have hundreds more."""
    for file in _of_driver(device / OF_DRIVER, device.name):
        if file.path.name not in of_ports:
            harm = find(file.channels[0].metric).harm
            if harm is not Harm.NEITHER:
                yield file


def _of_driver(folder: Path, instance: str) -> Iterator[AttributeFile]:
    for name in entries(folder)[0]:
        if name not in _REDUNDANT and name not in TRAFFIC_FILES:
            column = channel(f"network.infiniband.hw.{snake(name)}", instance)
            yield single_column(folder / name, column, SaturatingCounter(64, folder / name))


def _port_errors(port: RdmaPort) -> Iterator[AttributeFile]:
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
        if name not in TRAFFIC_FILES and name not in _REDUNDANT:
            column = channel(f"network.infiniband.{snake(name)}", port.name)
            path = port.path / "counters" / name
            yield single_column(path, column, SaturatingCounter(_BITS.get(name, 64), path))
    yield from _of_driver(port.path / OF_DRIVER, port.name)


class CounterSum:
    """Parser of several counters, one a line: their sum, missing where one of them is."""

    def __init__(self, parsers: Sequence[Callable[[bytes], int | None]]) -> None:
        self._parsers = parsers

    def __call__(self, data: bytes) -> int | None:
        lines = data.splitlines()
        values = [parse(line) for parse, line in zip(self._parsers, lines, strict=True)]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None


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

    def __init__(self, files: AttributeSource, sys: Path) -> None:
        self.lane = Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self._files, self._sys = files, sys
        self._active: Source = files

    def open(self) -> None:
        try:
            self._files.open()
        except Unsupported:
            raise self._refusal() from None
        pause_s = refresh_seconds(list(traffic_counters(self._sys)))
        fast = read_cost_ns(self._files.read, pause_s) <= FAST_MEDIAN_NS
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

    def _refusal(self) -> Unsupported:
        """Return why there is no traffic: there is no port, or its driver counts none."""
        if devices := {port.device for port in ib_ports(self._sys, addresses=False)}:
            names = ", ".join(sorted(devices))
            return Unsupported(f"no bytes or packets are counted for the ports of {names}")
        return _ABSENT

    def _update_channels(self) -> None:
        self.channels = in_lane(self._active.channels, self.lane)


def read_cost_ns(read: Callable[[], object], pause_s: float = 0.0) -> int:
    """Return the lowest cost of a few reads, in ns, each after a pause.

    Drivers keep what their device answered for some time: a read within it costs too little.
    """
    costs_ns = []
    for _ in range(_COST_READS):
        time.sleep(min(pause_s, _MAX_PAUSE_S))
        started_ns = time.monotonic_ns()
        read()
        costs_ns.append(time.monotonic_ns() - started_ns)
    return min(costs_ns)
