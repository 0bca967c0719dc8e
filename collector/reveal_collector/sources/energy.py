"""Energy of packages, cores and DRAM: turbostat's PkgWatt, CorWatt and RAMWatt.

A counter of joules per second is watts.  Read through the ``power`` PMU (arch/x86/events/rapl.c)
where it may be used, else from powercap's ``energy_uj`` (power/powercap/powercap.rst), which
only root may read since CVE-2020-8694.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import packages
from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import read_number, read_text
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.sources.pmu.device import Device, devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_EVENTS = {
    "energy-pkg": "cpu.energy.package",
    "energy-cores": "cpu.energy.cores",
    "energy-ram": "memory.energy",
    "energy-psys": "cpu.energy.platform",
}
# names of powercap's zones -> metric; the zone of a package is called package-N
_PARTS = {"core": "cpu.energy.cores", "dram": "memory.energy", "psys": "cpu.energy.platform"}
_PACKAGE = re.compile(r"package-(\d+)(?:-die-\d+)?\Z")
_ZONE = re.compile(r"intel-rapl:(\d+)(?::\d+)?\Z")  # intel-rapl-mmio counts the same again
_MICRO = 1e-6
_NAME = "energy"
_ABSENT = Unsupported(
    "there is neither a power PMU nor a powercap zone: no energy counter",
    "bare metal with the rapl or intel_rapl_msr module",
)


def sources(roots: Roots) -> list[Source]:
    return [FirstOf((PerfGroupSource(_NAME, Lane.SLOW, roots, _plan), Powercap(roots)))]


class FirstOf:
    """The first source that opens, under one name; the last one's reason when none does."""

    def __init__(self, choices: Sequence[Source]) -> None:
        self._choices = choices
        self._chosen = choices[-1]
        self.name, self.lane = self._chosen.name, self._chosen.lane
        self.channels: tuple[Channel, ...] = ()

    def open(self) -> None:
        self.close()
        refused = None
        for choice in self._choices:
            try:
                choice.open()
            except Unsupported as why:
                refused = why
            else:
                self._chosen, self.channels = choice, choice.channels
                return
        raise refused or _ABSENT

    def read(self) -> Sequence[int | None]:
        try:
            return self._chosen.read()
        except LayoutChanged:
            self.channels = self._chosen.channels
            raise

    def close(self) -> None:
        for choice in self._choices:
            choice.close()
        self.channels = ()


def _plan(roots: Roots) -> CountingPlan:
    device = devices(roots.sys).get("power")
    if device is None:
        raise _ABSENT
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    for cpu, package in packages(roots.sys, device.cpus()).items():
        counted = dict(_counted(device, package))
        groups.append((cpu, list(counted.values())))
        for column, event in counted.items():
            columns.setdefault(column, []).append((cpu, event))  # dies of a package add up
    return CountingPlan(groups, columns)


def _counted(device: Device, package: str) -> Iterator[tuple[Channel, PerfEvent]]:
    for name, metric in _EVENTS.items():
        if (named := device.named(name)) and named.unit == "Joules":
            yield channel(metric, package, named.scale), named.event


class Powercap:
    """``energy_uj`` of each RAPL zone, as counters that do not wrap."""

    name, lane = _NAME, Lane.SLOW

    def __init__(self, roots: Roots) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._folder = roots.sys / "class/powercap"
        self._zones: list[Zone] = []

    def open(self) -> None:
        self.close()
        denied: Unsupported | None = None
        columns = []
        for path, column in zones(self._folder):
            zone = Zone(path)
            try:
                zone.open()
            except Unsupported as why:
                denied = why
            else:
                self._zones.append(zone)
                columns.append(column)
        if not columns:
            raise denied or _ABSENT
        self.channels = tuple(columns)

    def read(self) -> Sequence[int | None]:
        return [zone.read() for zone in self._zones]

    def close(self) -> None:
        for zone in self._zones:
            zone.close()
        self._zones, self.channels = [], ()


class Zone:
    """One ``energy_uj``: microjoules, back to 0 beyond ``max_energy_range_uj``."""

    def __init__(self, path: Path) -> None:
        self._file = OpenFile(path / "energy_uj")
        self._range = read_number(path / "max_energy_range_uj") or 0
        self._last: int | None = None
        self._total = 0

    def open(self) -> None:
        self._file.open()

    def read(self) -> int | None:
        try:
            now = int(self._file.read())
        except (OSError, ValueError):
            return None
        gained = 0 if self._last is None else unwrapped(self._last, now, self._range)
        self._last = now
        if gained is None:
            return None
        self._total += gained
        return self._total

    def close(self) -> None:
        self._file.close()


def unwrapped(last: int, now: int, limit: int) -> int | None:
    """What a counter that wraps beyond ``limit`` gained; None when it was reset instead.

    A reading once a second never sees half of the range go by: a fall of less than that is a
    reset (the module loaded anew), and the gain is not known.
    """
    if now >= last:
        return now - last
    gained = now + limit + 1 - last
    return gained if 0 < gained <= limit // 2 else None


def zones(folder: Path) -> list[tuple[Path, Channel]]:
    """The RAPL zones by package, each with its channel; none where there is no powercap."""
    try:
        found = sorted((path for path in folder.iterdir() if _ZONE.match(path.name)), key=_number)
    except OSError:
        return []
    names = {path.name: read_text(path / "name") for path in found}
    columns: dict[Channel, Path] = {}
    for path in found:
        top = _PACKAGE.match(names.get(path.name.rpartition(":")[0], "") or names[path.name])
        package = top[1] if top else ""
        own = _PACKAGE.match(names[path.name])
        metric = "cpu.energy.package" if own else _PARTS.get(names[path.name])
        if metric:
            columns.setdefault(channel(metric, package, _MICRO), path)
    return [(path, column) for column, path in columns.items()]


def _number(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(":")[1:]]
