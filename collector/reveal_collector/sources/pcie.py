"""PCIe links and the errors seen on them (AER).

Kernel: Documentation/ABI/testing/sysfs-bus-pci and sysfs-bus-pci-devices-aer.  A link is as
good as its worse end: the maximum is what device and port above it both can.  Links of idle GPUs
are slowed down to save power, so speed alone says nothing while a GPU rests; a lost lane does.

An error counts where it is *seen*, which may be the port above a faulty device: that port is
read as well.  Named errors get a column with their first event, totals always have one.  Counters
live in memory; a quiet one is read every ten seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from reveal_collector.devices.pci import PciDevice, pci_devices
from reveal_collector.kernel.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
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

_MTS = 1e8  # speeds are told in tenths of GT/s
_SEVERITIES = ("correctable", "nonfatal", "fatal")
_TOTAL = "TOTAL_ERR_"
_SPEED = re.compile(rb"(\d+)(?:\.(\d)\d*)? GT/s")
_ERROR = re.compile(r"^([A-Za-z][\w -]{0,40}) (\d+)$", re.ASCII | re.MULTILINE)
_UNKNOWN_WIDTH = 255
_TURNS = 10

Parse = Callable[[bytes], int | None]


def sources(roots: Roots) -> list[Source]:
    found = _Errors(roots.sys)

    def mark() -> object:
        return entries(roots.sys / "bus/pci/devices")

    def links() -> Iterator[AttributeFile]:
        return (file for device in pci_devices(roots.sys) for file in link(device))

    no_links = Unsupported(
        "no PCIe link can be seen", "bare metal: virtual machines mostly hide their links"
    )
    no_counters = Unsupported(
        "no PCIe device counts errors", "bare metal and a kernel with CONFIG_PCIEAER"
    )
    counters = AttributeSource("aer", Lane.SLOW, found.files, found.mark, no_counters, _TURNS)
    # in a thread, as finding the devices anew takes milliseconds on a host full of cards
    return [AttributeSource("pcie", Lane.RARE, links, mark, no_links), BackgroundSource(counters)]


def link(device: PciDevice) -> Iterator[AttributeFile]:
    """Speed and width of a device's link now, and the most both its ends can do."""
    for name, scale, parse in (("speed", _MTS, speed), ("width", 1.0, width)):
        now = channel(f"{device.kind}.pcie.{name}", device.instance, scale)
        most = channel(f"{device.kind}.pcie.{name}_maximum", device.instance, scale)
        above = None if device.port is None else parse(_bytes(device.port / f"max_link_{name}"))
        yield single_column(device.path / f"current_link_{name}", now, parse)
        yield single_column(device.path / f"max_link_{name}", most, partial(_worse, parse, above))


def speed(text: bytes) -> int | None:
    """``16.0 GT/s PCIe`` in tenths of GT/s; ``None`` for "Unknown" and what else is no speed."""
    found = _SPEED.match(text)
    return int(found[1]) * 10 + int(found[2] or b"0") if found else None


def width(text: bytes) -> int | None:
    """Lanes of a link; ``None`` for one that is down (0) or does not tell (255)."""
    lanes = int(text) if text.strip().isdigit() else 0
    return lanes if 0 < lanes < _UNKNOWN_WIDTH else None


def _worse(parse: Parse, above: int | None, text: bytes) -> int | None:
    """What the device can do, or less where the port above it can do less."""
    own = parse(text)
    return own if own is None or above is None else min(own, above)


def _bytes(path: Path) -> bytes:
    return read_text(path).encode()


class _Errors:
    """Which AER counters there are: totals, and each error by name once it was seen."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._fresh: set[tuple[Path, str]] = set()

    def mark(self) -> object:
        return entries(self._sys / "bus/pci/devices"), len(self._fresh)

    def files(self) -> Iterator[AttributeFile]:
        for kind, instance, path in seats(pci_devices(self._sys)):
            for severity in _SEVERITIES:
                metric = f"{kind}.pcie.aer.{severity}"
                yield self._file(path / f"aer_dev_{severity}", metric, instance)

    def _file(self, path: Path, metric: str, instance: str) -> AttributeFile:
        names = [name for name, count in errors(read_text(path)).items() if count and name]
        channels = [channel(metric, instance)]
        channels += [channel(f"{metric}.{snake(name)}", instance) for name in names]

        def parse(data: bytes) -> list[int | None]:
            counts = errors(data.decode("ascii", "replace"))
            self._fresh |= {(path, name) for name, count in counts.items() if count and name}
            return [counts.get("", None), *map(counts.get, names)]

        return AttributeFile(path, tuple(channels), parse)


def errors(text: str) -> dict[str, int]:
    """An AER file by error; the total stands under "".

    An error's name is one word (``BadTLP``), several before Linux 5.0 (``Bad TLP``).
    """
    found = {name.rstrip(): int(number) for name, number in _ERROR.findall(text)}
    return {"" if name.startswith(_TOTAL) else name: count for name, count in found.items()}


def seats(found: Sequence[PciDevice]) -> list[tuple[str, str, Path]]:
    """Where errors may be seen, each once: the devices and the ports above them.

    Gives kind, instance and folder.  Functions of one card share their port.
    """
    places = {device.path: (device.kind, device.instance) for device in found}
    for device in found:
        if device.port is not None:
            above = f"{device.port.name} above {device.name or device.address}"
            places.setdefault(device.port, (device.kind, above))
    return [(kind, instance, path) for path, (kind, instance) in places.items()]
