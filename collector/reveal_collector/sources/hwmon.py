"""Sensors of /sys/class/hwmon: temperatures, and the power of what has no energy counter.

Kernel: Documentation/hwmon/sysfs-interface.rst.  Millidegrees and microwatts.  The package's own
temperature (turbostat's PkgTmp) is read once a second; every other sensor in the rare lane, as
NVMe, ACPI and board sensors answer after milliseconds.  Cores (CoreTmp) become the hottest of
their package, as 112 rows would say no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reveal_collector.kernel.errors import Unsupported
from reveal_collector.readers.aggregated import AggregatedSource, number_attributes
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import entries, read_text, resolve_link
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_SENSOR = re.compile(r"temp\d+_input\Z|power\d+_(average|input)\Z")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.+-]+")
_PACKAGE_LABEL = re.compile(r"Package id (\d+)\Z")
_AMD = ("k10temp", "zenpower")
_AMD_PACKAGE = ("Tctl", "Tdie")
_PACKAGE, _CORE = "cpu.temperature.package", "cpu.temperature.core"
# chip -> metric of its temperatures; the others' are cpu.temperature.board
_CHIPS = {
    "nvme": "storage.temperature",
    "drivetemp": "storage.temperature",
    "mlx5": "network.temperature",
    "bnxt_en": "network.temperature",
    "ice": "network.temperature",
    "i40e": "network.temperature",
    "jc42": "memory.temperature",
    "spd5118": "memory.temperature",
    "amdgpu": "gpu.temperature.sensor",
}
_ABSENT = Unsupported(
    "hwmon shows no sensor of this kind",
    "bare metal with the driver of the CPU's sensors (coretemp, k10temp)",
)


@dataclass(frozen=True)
class Sensor:
    """One file; ``order`` is its chip's place among chips of the same name."""

    path: Path
    chip: str
    order: int
    device: str
    label: str


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "class/hwmon"

    def packages() -> dict[Path, Channel]:
        found = _channels(folder)
        return {path: column for path, column in found.items() if column.metric == _PACKAGE}

    def others() -> dict[Path, Channel]:
        found = _channels(folder)
        return {path: column for path, column in found.items() if column.metric != _PACKAGE}

    return [
        AggregatedSource(
            number_attributes("hwmon", Lane.SLOW, packages, partial(entries, folder), _ABSENT)
        ),
        AggregatedSource(
            number_attributes("sensors", Lane.RARE, others, partial(entries, folder), _ABSENT)
        ),
    ]


def _channels(folder: Path) -> dict[Path, Channel]:
    return {sensor.path: column_of(sensor) for sensor in _sensors(folder)}


def column_of(sensor: Sensor) -> Channel:
    """The channel of a sensor; those of one package's cores share theirs."""
    if sensor.path.name.startswith("power"):
        return channel("cpu.power", f"{sensor.device}/{sensor.label}", 1e-6)
    if sensor.chip == "coretemp":
        named = _PACKAGE_LABEL.match(sensor.label.replace("_", " "))
        package = named[1] if named else str(sensor.order)
        return channel(_PACKAGE if named else _CORE, package, 1e-3)
    if sensor.chip in _AMD:
        own = sensor.label in _AMD_PACKAGE
        return channel(_PACKAGE if own else _CORE, str(sensor.order), 1e-3)
    metric = _CHIPS.get(sensor.chip, "cpu.temperature.board")
    return channel(metric, f"{sensor.device}/{sensor.label}", 1e-3)


def _sensors(folder: Path) -> Iterator[Sensor]:
    seen: dict[str, int] = {}
    for chip in sorted((folder / name for name in entries(folder)[0]), key=_where):
        name = read_text(chip / "name") or chip.name
        order = seen[name] = seen.get(name, -1) + 1
        for path in _inputs(chip):
            stem = path.name.partition("_")[0]
            label = _plain(_label(chip, stem))
            yield Sensor(path, name, order, _device(chip, name, order), label)


def _inputs(chip: Path) -> list[Path]:
    """The sensors' files; drivers of the old kind (ACPI power meters) have them in the device."""
    for place in (chip, chip / "device"):
        if found := [place / file for file in entries(place)[0] if _SENSOR.match(file)]:
            return found
    return []


def _label(chip: Path, stem: str) -> str:
    names = (chip / f"{stem}_label", chip / "device" / f"{stem}_label",
             chip / f"{stem}_oem_info", chip / "device" / f"{stem}_oem_info")  # fmt: skip
    return next((text for path in names if (text := read_text(path))), stem)


def _where(chip: Path) -> tuple[str, str]:
    """By device, as hwmonN is numbered in the order in which drivers were loaded."""
    return str(resolve_link(chip / "device")), chip.name


def _device(chip: Path, name: str, order: int) -> str:
    """What people know the device by: nvme0, mlx5_0 by its PCI address, else the chip's name."""
    device = resolve_link(chip / "device")
    if name in ("nvme", "drivetemp") or re.fullmatch(r"[0-9a-f]{4}:[0-9a-f:.]+", device.name):
        return _plain(device.name)
    return name if order == 0 else f"{name}-{order}"


def _plain(label: str) -> str:
    return _NOT_A_NAME.sub("_", label.strip())
