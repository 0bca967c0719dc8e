"""PCIe links and the errors reported on them (AER).

Kernel: Documentation/ABI/testing/sysfs-bus-pci and sysfs-bus-pci-devices-aer.  A link is as fast
as its slower end, so the maximum is the lower one of the device and the port above it.  Links of
idle GPUs slow down to save power, so speed alone has no meaning while a GPU is idle; a lost lane
has.

The device that *detects* an error counts it.  This may be the port above a faulty device, so that
port is read as well.  Totals always have a column, named errors get one with their first event.
The counters are in memory; an unchanged one is read every ten seconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from reveal_collector.devices.pci import PciDevice, pci_devices
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    entries,
    read_text,
    single_column,
)
from reveal_collector.readers.textfile import channel
from reveal_contract.metric import Lane
from reveal_contract.names import snake

_TENTH_GTS = 1e8  # speeds are in tenths of GT/s
_SEVERITIES = ("correctable", "nonfatal", "fatal")
_TOTAL = "TOTAL_ERR_"
_SPEED = re.compile(rb"(\d+)(?:\.(\d)\d*)? GT/s")
_ERROR = re.compile(r"^([A-Za-z][\w -]{0,40}) (\d+)$", re.ASCII | re.MULTILINE)
_QUIET_PERIOD = 10

Parse = Callable[[bytes], int | None]


def sources(roots: Roots) -> list[Source]:
    found = _AerCounters(roots.sys)

    def layout_state() -> object:
        return entries(roots.sys / "bus/pci/devices")

    def links() -> Iterator[AttributeFile]:
        return (file for device in pci_devices(roots.sys) for file in link(device))

    no_links = Unsupported(
        "no PCIe link is visible", "use bare metal; most virtual machines hide their links"
    )
    no_counters = Unsupported(
        "no PCIe device counts errors", "use bare metal and a kernel with CONFIG_PCIEAER"
    )
    counters = AttributeSource(
        "aer", Lane.SLOW, found.files, found.layout_state, no_counters, _QUIET_PERIOD
    )
    # In a thread, because listing the devices takes milliseconds on a host with many cards.
    return [
        AttributeSource("pcie", Lane.RARE, links, layout_state, no_links),
        BackgroundSource(counters),
    ]


def link(device: PciDevice) -> Iterator[AttributeFile]:
    """Yield speed and width of a device's link, and the maximum that both its ends support."""
    for name, scale, parse in (("speed", _TENTH_GTS, speed), ("width", 1.0, width)):
        current = channel(f"{device.kind}.pcie.{name}", device.instance, scale)
        maximum = channel(f"{device.kind}.pcie.{name}_maximum", device.instance, scale)
        port_maximum = (
            None if device.port is None else parse(_bytes(device.port / f"max_link_{name}"))
        )
        yield single_column(device.path / f"current_link_{name}", current, parse)
        yield single_column(
            device.path / f"max_link_{name}", maximum, partial(_lower_maximum, parse, port_maximum)
        )


def speed(text: bytes) -> int | None:
    """Parse ``16.0 GT/s PCIe`` to tenths of GT/s; return ``None`` for "Unknown" and the like."""
    found = _SPEED.match(text)
    return int(found[1]) * 10 + int(found[2] or b"0") if found else None


def width(text: bytes) -> int | None:
    """Parse the lanes of a link; return ``None`` if it is down or unknown."""
    lanes = raw_bounds(channel("network.pcie.width"))  # those of any device
    return lanes.known(int(text) if text.strip().isdigit() else None)


def _lower_maximum(parse: Parse, port_maximum: int | None, text: bytes) -> int | None:
    """Return the maximum of the device, or that of the port above it if this is lower."""
    own = parse(text)
    return own if own is None or port_maximum is None else min(own, port_maximum)


def _bytes(path: Path) -> bytes:
    return os.fsencode(read_text(path))


class _AerCounters:
    """The AER counters of all devices: totals, and each named error after its first event."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._new_errors: set[tuple[Path, str]] = set()

    def layout_state(self) -> object:
        return entries(self._sys / "bus/pci/devices"), len(self._new_errors)

    def files(self) -> Iterator[AttributeFile]:
        for kind, instance, path in reporting_devices(pci_devices(self._sys)):
            for severity in _SEVERITIES:
                metric = f"{kind}.pcie.aer.{severity}"
                yield self._file(path / f"aer_dev_{severity}", metric, instance)

    def _file(self, path: Path, metric: str, instance: str) -> AttributeFile:
        names = [name for name, count in errors(read_text(path)).items() if count and name]
        channels = [channel(metric, instance)]
        channels += [channel(f"{metric}.{snake(name)}", instance) for name in names]

        def parse(data: bytes) -> list[int | None]:
            counts = errors(data.decode("ascii", "replace"))
            self._new_errors |= {(path, name) for name, count in counts.items() if count and name}
            return [counts.get("", None), *map(counts.get, names)]

        return AttributeFile(path, tuple(channels), parse)


def errors(text: str) -> dict[str, int]:
    """Return the counts of an AER file by error; the total has the key "".

    The name of an error is one word (``BadTLP``), before Linux 5.0 several (``Bad TLP``).
    """
    found = {name.rstrip(): int(number) for name, number in _ERROR.findall(text)}
    return {"" if name.startswith(_TOTAL) else name: count for name, count in found.items()}


def reporting_devices(found: Sequence[PciDevice]) -> list[tuple[str, str, Path]]:
    """Return kind, instance and folder of the devices and the ports above them, each once.

    The functions of one card share their port.
    """
    reporters = {device.path: (device.kind, device.instance) for device in found}
    for device in found:
        if device.port is not None:
            instance = f"{device.port.name} above {device.name or device.address}"
            reporters.setdefault(device.port, (device.kind, instance))
    return [(kind, instance, path) for path, (kind, instance) in reporters.items()]
