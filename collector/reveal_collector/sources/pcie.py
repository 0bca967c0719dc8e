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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reveal_collector.attributes import Attribute, Attributes, Snapshot, listed, text_of
from reveal_collector.pci import Device, devices
from reveal_collector.source import Roots, Source, Unsupported
from reveal_collector.textfile import channel, is_number
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.names import snake

_MTS = 1e8  # speeds are told in tenths of GT/s
_SEVERITIES = ("correctable", "nonfatal", "fatal")
_TOTAL = "TOTAL_ERR_"
_SPEED = re.compile(r"(\d+)(?:\.(\d)\d*)? GT/s", re.ASCII)
_UNKNOWN_WIDTH = 255
_TURNS = 10


def sources(roots: Roots) -> list[Source]:
    found = _Errors(roots.sys)

    def look() -> Mapping[Channel, int | None]:
        return {key: value for each in devices(roots.sys) for key, value in link(each).items()}

    return [
        Snapshot("pcie", look, Unsupported(
            "no PCIe link can be seen", "bare metal: virtual machines mostly hide their links",
        )),
        Attributes("aer", Lane.SLOW, found.files, found.mark, Unsupported(
            "no PCIe device counts errors", "bare metal and a kernel with CONFIG_PCIEAER",
        ), _TURNS),
    ]  # fmt: skip


def link(device: Device) -> dict[Channel, int | None]:
    """Speed and width of a device's link now, and the most both its ends can do."""
    if not (device.path / "current_link_width").exists():
        return {}
    ends = [end for end in (device.path, device.port) if end is not None]
    tops = [(speed(text_of(end / "max_link_speed")), width(text_of(end / "max_link_width")))
            for end in ends]  # fmt: skip
    values = {
        ("speed", _MTS): speed(text_of(device.path / "current_link_speed")),
        ("width", 1.0): width(text_of(device.path / "current_link_width")),
        ("speed_maximum", _MTS): _least(top for top, _ in tops),
        ("width_maximum", 1.0): _least(top for _, top in tops),
    }
    return {
        channel(f"{device.kind}.pcie.{name}", device.instance, scale): value
        for (name, scale), value in values.items()
    }


def speed(text: str) -> int | None:
    """``16.0 GT/s PCIe`` in tenths of GT/s; ``None`` for "Unknown" and what else is no speed."""
    found = _SPEED.match(text)
    return int(found[1]) * 10 + int(found[2] or "0") if found else None


def width(text: str) -> int | None:
    """Lanes of a link; ``None`` for one that is down (0) or does not tell (255)."""
    lanes = int(text) if text.isdecimal() and text.isascii() else 0
    return lanes if 0 < lanes < _UNKNOWN_WIDTH else None


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


class _Errors:
    """Which AER counters there are: totals, and each error by name once it was seen."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._fresh: set[tuple[Path, str]] = set()

    def mark(self) -> object:
        return listed(self._sys / "bus/pci/devices"), len(self._fresh)

    def files(self) -> Iterator[Attribute]:
        for kind, instance, path in seats(devices(self._sys)):
            for severity in _SEVERITIES:
                metric = f"{kind}.pcie.aer.{severity}"
                yield self._file(path / f"aer_dev_{severity}", metric, instance)

    def _file(self, path: Path, metric: str, instance: str) -> Attribute:
        names = [name for name, count in errors(text_of(path)).items() if count and name]
        channels = [channel(metric, instance)]
        channels += [channel(f"{metric}.{snake(name)}", instance) for name in names]

        def parse(data: bytes) -> list[int | None]:
            counts = errors(data.decode("ascii", "replace"))
            self._fresh |= {(path, name) for name, count in counts.items() if count and name}
            return [counts.get("", None), *map(counts.get, names)]

        return Attribute(path, tuple(channels), parse)


def errors(text: str) -> dict[str, int]:
    """An AER file by error; the total stands under "".

    An error's name is one word (``BadTLP``), several before Linux 5.0 (``Bad TLP``).
    """
    counts: dict[str, int] = {}
    for line in text.splitlines():
        name, _, number = line.rstrip().rpartition(" ")
        if name and is_number(number):
            counts["" if name.startswith(_TOTAL) else name.strip()] = int(number)
    return counts


def seats(found: Sequence[Device]) -> list[tuple[str, str, Path]]:
    """Where errors may be seen, each once: the devices and the ports above them.

    Gives kind, instance and folder.  Functions of one card share their port.
    """
    places = {device.path: (device.kind, device.instance) for device in found}
    for device in found:
        if device.port is not None:
            above = f"{device.port.name} above {device.name or device.address}"
            places.setdefault(device.port, (device.kind, above))
    return [(kind, instance, path) for path, (kind, instance) in places.items()]
