"""Sensors of /sys/class/hwmon: temperatures, and the power of devices without energy counter.

Kernel: Documentation/hwmon/sysfs-interface.rst, in millidegrees and microwatts.  The temperature
of the package (turbostat's PkgTmp) is read once a second.  All other sensors are in the rare
lane, because NVMe, ACPI and board sensors take milliseconds.  Core temperatures (CoreTmp) are
reduced to the hottest core of a package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
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
# Tctl controls the fans: some processors add an offset to it, and these have Tdie, too
_CONTROL, _DIE = "Tctl", "Tdie"
_PACKAGE, _CORE = "cpu.temperature.package", "cpu.temperature.core"
# chip -> metric of its temperatures; all others are cpu.temperature.board
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
_POWER_ELSEWHERE = ("amdgpu",)  # it is gpu.power
_ABSENT = Unsupported(
    "hwmon has no sensor of this kind",
    "use bare metal with the driver of the CPU's sensors (coretemp, k10temp)",
)


@dataclass(frozen=True)
class Sensor:
    """One file; ``order`` counts the chips of the same name."""

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
    """Return the channel of a sensor; the cores of one package share a channel."""
    if sensor.path.name.startswith("power"):
        return channel("cpu.power", f"{sensor.device}/{sensor.label}", 1e-6)
    if sensor.chip == "coretemp":
        match = _PACKAGE_LABEL.match(sensor.label.replace("_", " "))
        package = match[1] if match else str(sensor.order)
        return channel(_PACKAGE if match else _CORE, package, 1e-3)
    if sensor.chip in _AMD:
        is_package = sensor.label in (_CONTROL, _DIE)
        return channel(_PACKAGE if is_package else _CORE, str(sensor.order), 1e-3)
    metric = _CHIPS.get(sensor.chip, "cpu.temperature.board")
    return channel(metric, f"{sensor.device}/{sensor.label}", 1e-3)


def _sensors(folder: Path) -> Iterator[Sensor]:
    orders: dict[str, int] = {}
    for chip in sorted((folder / name for name in entries(folder)[0]), key=_device_path):
        name = read_text(chip / "name") or chip.name
        order = orders[name] = orders.get(name, -1) + 1
        device = _device(chip, name, order)
        found = {
            path: _plain(_label(chip, path.name.partition("_")[0]))
            for path in _inputs(chip)
            if not (name in _POWER_ELSEWHERE and path.name.startswith("power"))
        }
        for path, label in found.items():
            if name in _AMD and label == _CONTROL and _DIE in found.values():
                continue
            yield Sensor(path, name, order, device, label)


def _inputs(chip: Path) -> list[Path]:
    """Return the sensor files; old drivers (ACPI power meters) keep them in the device."""
    for directory in (chip, chip / "device"):
        if found := [directory / file for file in entries(directory)[0] if _SENSOR.match(file)]:
            return found
    return []


def _label(chip: Path, stem: str) -> str:
    names = (chip / f"{stem}_label", chip / "device" / f"{stem}_label",
             chip / f"{stem}_oem_info", chip / "device" / f"{stem}_oem_info")  # fmt: skip
    return next((text for path in names if (text := read_text(path))), stem)


def _device_path(chip: Path) -> tuple[str, str]:
    """Return a sort key by device: the numbers of hwmonN depend on the load order of drivers."""
    return str(resolve_link(chip / "device")), chip.name


def _device(chip: Path, name: str, order: int) -> str:
    """Return a well-known name: nvme0, the PCI address of a card, else the name of the chip."""
    device = resolve_link(chip / "device")
    if name in ("nvme", "drivetemp") or re.fullmatch(r"[0-9a-f]{4}:[0-9a-f:.]+", device.name):
        return _plain(device.name)
    return name if order == 0 else f"{name}-{order}"


def _plain(label: str) -> str:
    return _NOT_A_NAME.sub("_", label.strip())
