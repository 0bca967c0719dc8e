"""Energy of packages, cores and DRAM: turbostat's PkgWatt, CorWatt and RAMWatt.

The rate of a counter in joules is a power in watts.  The counters are read through the ``power``
PMU (arch/x86/events/rapl.c) if the process may use it, else from ``energy_uj`` of powercap
(power/powercap/powercap.rst), which only root can read since CVE-2020-8694.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import packages
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.joined import Changes
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sums import grouped, total
from reveal_collector.readers.sysfs_attributes import entries, read_number, read_text
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.sources.pmu.device import PmuDevice, pmu_devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_EVENTS = {
    "energy-pkg": "cpu.energy.package",
    "energy-cores": "cpu.energy.cores",
    "energy-ram": "memory.energy",
    "energy-psys": "cpu.energy.platform",
}
# name of a powercap zone -> metric.  The zone of a package is named package-N, those of its dies
# package-N-die-M.  The platform of the first package is psys, that of package N is psys-N.
_ZONES = {"core": "cpu.energy.cores", "dram": "memory.energy"}
_PACKAGE = re.compile(r"package-(\d+)(?:-die-\d+)?\Z")
_PLATFORM_METRIC = "cpu.energy.platform"
_PLATFORM = re.compile(r"psys(?:-(\d+))?\Z")
_ZONE = re.compile(r"intel-rapl:(\d+)(?::\d+)?\Z")  # intel-rapl-mmio repeats the same counters
_MICRO = 1e-6
_NAME = "energy"
_ABSENT = Unsupported(
    "there is no energy counter: neither a power PMU nor a powercap zone",
    "use bare metal with the rapl or intel_rapl_msr module",
)


def sources(roots: Roots) -> list[Source]:
    return [FirstAvailable((PerfGroupSource(_NAME, Lane.SLOW, roots, _plan), Powercap(roots)))]


class FirstAvailable:
    """The first source that opens; if none does, the reason of the last one."""

    def __init__(self, alternatives: Sequence[Source]) -> None:
        self._alternatives = alternatives
        self._source = alternatives[-1]
        self.name, self.lane = self._source.name, self._source.lane
        self.channels: tuple[Channel, ...] = ()

    def open(self) -> None:
        self.close()
        refused = None
        for source in self._alternatives:
            try:
                source.open()
            except Unsupported as reason:
                refused = reason
            else:
                self._source, self.channels = source, source.channels
                return
        raise refused or _ABSENT

    def read(self) -> Sequence[int | None]:
        try:
            return self._source.read()
        except LayoutChanged:
            self.channels = self._source.channels
            raise

    def close(self) -> None:
        for source in self._alternatives:
            source.close()
        self.channels = ()


def _plan(roots: Roots) -> CountingPlan:
    device = pmu_devices(roots.sys).get("power")
    if device is None:
        raise _ABSENT
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    for cpu, package in packages(roots.sys, device.cpus()).items():
        counted = dict(_counted(device, package))
        groups.append((cpu, list(counted.values())))
        for column, event in counted.items():
            columns.setdefault(column, []).append((cpu, event))  # sum over the dies of a package
    return CountingPlan(groups, columns)


def _counted(device: PmuDevice, package: str) -> Iterator[tuple[Channel, PerfEvent]]:
    for name, metric in _EVENTS.items():
        if (named := device.named(name)) and named.unit == "Joules":
            yield channel(metric, package, named.scale), named.event


class Powercap:
    """``energy_uj`` of each RAPL zone, as counters that do not wrap.

    Zones come and go with the modules that provide them.
    """

    name, lane = _NAME, Lane.SLOW

    def __init__(self, roots: Roots) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._folder = roots.sys / "class/powercap"
        self._changes = Changes(lambda: entries(self._folder), self.lane)
        self._zones: list[tuple[RaplZone, ...]] = []

    def open(self) -> None:
        self.close()
        self._changes.adopt()
        denied: Unsupported | None = None
        columns = []
        for column, paths in grouped(zones(self._folder)).items():
            parts = tuple(map(RaplZone, paths))
            try:
                for zone in parts:
                    zone.open()
            except Unsupported as reason:
                denied = reason
                for zone in parts:
                    zone.close()
            else:
                self._zones.append(parts)
                columns.append(column)
        if not columns:
            raise denied or _ABSENT
        self.channels = tuple(columns)

    def read(self) -> Sequence[int | None]:
        if self._changes.after_read():
            self.open()
            raise LayoutChanged(self.name)
        return [total([zone.read() for zone in parts]) for parts in self._zones]

    def close(self) -> None:
        for zone in itertools.chain.from_iterable(self._zones):
            zone.close()
        self._zones, self.channels = [], ()


class RaplZone:
    """One ``energy_uj`` in microjoules, which wraps to 0 above ``max_energy_range_uj``."""

    def __init__(self, path: Path) -> None:
        self._file = OpenFile(path / "energy_uj")
        self._range = read_number(path / "max_energy_range_uj") or 0
        self._last: int | None = None
        self._total = 0

    def open(self) -> None:
        self._file.open()

    def read(self) -> int | None:
        try:
            value = int(self._file.read())
        except (OSError, ValueError):
            return None
        increase = 0 if self._last is None else unwrapped(self._last, value, self._range)
        self._last = value
        if increase is None:
            return None
        self._total += increase
        return self._total

    def close(self) -> None:
        self._file.close()


def unwrapped(last: int, value: int, maximum: int) -> int | None:
    """Return the increase of a counter that wraps above ``maximum``; ``None`` after a reset.

    At one read a second a counter never passes half of its range.  A decrease by less than that is
    a reset (the module was loaded again), and the increase is unknown.
    """
    if value >= last:
        return value - last
    increase = value + maximum + 1 - last
    return increase if 0 < increase <= maximum // 2 else None


def zones(folder: Path) -> list[tuple[Channel, Path]]:
    """Return the RAPL zones with their channels; an empty list without powercap.

    The dies of a package are parts of its channel.  Two platforms are not: of two with the same
    name the second has the number of its zone for an instance.
    """
    try:
        found = sorted((path for path in folder.iterdir() if _ZONE.match(path.name)), key=_number)
    except OSError:
        return []
    names = {path.name: read_text(path / "name") for path in found}
    columns: list[tuple[Channel, Path]] = []
    for path in found:
        top = _PACKAGE.match(names.get(path.name.rpartition(":")[0], "") or names[path.name])
        package, name = top[1] if top else "", names[path.name]
        if _PACKAGE.match(name):
            columns.append((channel("cpu.energy.package", package, _MICRO), path))
        elif name in _ZONES:
            columns.append((channel(_ZONES[name], package, _MICRO), path))
        elif (platform := _PLATFORM.match(name)) is not None:
            column = channel(_PLATFORM_METRIC, platform[1] or package, _MICRO)
            if column in (other for other, _ in columns):
                column = channel(_PLATFORM_METRIC, str(_number(path)[0]), _MICRO)
            columns.append((column, path))
    return columns


def _number(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(":")[1:]]
