"""CPU clocks as cpufreq reports them, and how often cores were throttled because of heat.

On x86, kernels 4.15 to 5.18 measure ``scaling_cur_freq`` for 20 ms per CPU.  If reading takes
that long, the source is refused, because it would delay the others.  On large hosts some CPUs are
read each second and the others keep their last clock; the columns are the mean, the lowest and
the highest.  Throttling: Documentation/ABI/testing/sysfs-devices-system-cpu,
``thermal_throttle``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from reveal_collector.devices.cpu_topology import MOST_CPUS, first_of, first_threads, packages
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.aggregated import AggregatedSource, number_attributes
from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import read_text
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.sources.cpuidle import cpu_folders
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_KHZ = 1000.0
_MS = 1e6
_MAX_PASS_S = 0.005  # for one pass over all CPUs
_ABSENT = Unsupported(
    "no CPU has cpufreq", "load a cpufreq driver; most virtual machines have none"
)
_NO_COUNTER = Unsupported(
    "no CPU counts thermal throttling", "use an Intel CPU on bare metal; other CPUs do not count it"
)
_CORE = (
    ("core_throttle_count", "cpu.thermal_throttle.core", 1.0),
    ("core_throttle_total_time_ms", "cpu.thermal_throttle.core_time", _MS),
)
_PACKAGE = (
    ("package_throttle_count", "cpu.thermal_throttle.package", 1.0),
    ("package_throttle_total_time_ms", "cpu.thermal_throttle.package_time", _MS),
)


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "devices/system/cpu"

    online = partial(read_text, folder / "online")

    def package() -> dict[Path, Channel]:
        return dict(_package_files(roots.sys))

    def core() -> dict[Path, Channel]:
        return dict(_core_files(roots.sys))

    def limits() -> dict[Path, Channel]:
        return dict(_limits(roots.sys))

    return [
        CpuFrequencies(folder),
        AggregatedSource(
            number_attributes("frequency-limits", Lane.RARE, limits, online, _ABSENT), min
        ),
        number_attributes("throttling", Lane.SLOW, package, online, _NO_COUNTER),
        AggregatedSource(
            number_attributes("core-throttling", Lane.RARE, core, online, _NO_COUNTER)
        ),
    ]


class CpuFrequencies:
    """``scaling_cur_freq`` of each CPU, or its mean, lowest and highest on a large host."""

    name, lane = "cpufreq", Lane.SLOW

    def __init__(self, folder: Path) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._folder = folder
        self._files: list[OpenFile] = []
        self._clocks: list[int | None] = []
        self._online = ""
        self._offset = 0
        self._bounds = raw_bounds(channel("cpu.frequency", scale=_KHZ))

    def open(self) -> None:
        self._open_files()
        if not self.channels:
            raise _ABSENT
        start = time.perf_counter()
        self._clocks = [self._read_clock(file) for file in self._files]
        took = time.perf_counter() - start
        if took > _MAX_PASS_S:
            self.close()
            raise Unsupported(
                f"reading the clock of all CPUs took {took * 1e3:.0f} ms", "use Linux 5.19 or later"
            )

    def read(self) -> Sequence[int | None]:
        stride = -(-len(self._files) // MOST_CPUS)
        self._offset = (self._offset + 1) % stride
        if read_text(self._folder / "online") != self._online:
            self._open_files()
            self._clocks = [self._read_clock(file) for file in self._files]
            raise LayoutChanged(self.name)
        for index in range(self._offset, len(self._files), stride):
            self._clocks[index] = self._read_clock(self._files[index])
        return self._clocks if stride == 1 else mean_lowest_highest(self._clocks)

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._files, self.channels = [], ()

    def _read_clock(self, file: OpenFile) -> int | None:
        try:
            return self._bounds.known(int(file.read()))
        except (OSError, ValueError):
            return None

    def _open_files(self) -> None:
        self.close()
        found = cpu_folders(self._folder)
        self._online = read_text(self._folder / "online")
        columns = []
        for cpu, path in found:
            file = OpenFile(path / "cpufreq/scaling_cur_freq")
            try:
                file.open()
            except Unsupported:
                continue
            self._files.append(file)
            columns.append(channel("cpu.frequency", str(cpu), _KHZ))
        if len(columns) > MOST_CPUS:
            names = ("mean", "lowest", "highest")
            columns = [channel(f"cpu.frequency.{name}", "", _KHZ) for name in names]
        self.channels = tuple(columns)


def mean_lowest_highest(clocks: Sequence[int | None]) -> list[int | None]:
    """Return the mean, the lowest and the highest of the known clocks."""
    known = [clock for clock in clocks if clock is not None]
    if not known:
        return [None, None, None]
    return [sum(known) // len(known), min(known), max(known)]


def _limits(sys: Path) -> Iterator[tuple[Path, Channel]]:
    found = dict(cpu_folders(sys / "devices/system/cpu"))
    for cpu, package in packages(sys, found).items():
        yield (
            found[cpu] / "cpufreq/scaling_max_freq",
            channel("cpu.frequency.maximum", package, _KHZ),
        )


def _package_files(sys: Path) -> Iterator[tuple[Path, Channel]]:
    """Yield the files of the first CPU of each package; all its CPUs show the same count."""
    folder = sys / "devices/system/cpu"
    cpus = [cpu for cpu, path in cpu_folders(folder) if (path / "thermal_throttle").is_dir()]
    for package, cpu in first_of(packages(sys, cpus)).items():
        for file, metric, scale in _PACKAGE:
            yield folder / f"cpu{cpu}/thermal_throttle" / file, channel(metric, package, scale)


def _core_files(sys: Path) -> Iterator[tuple[Path, Channel]]:
    folder = sys / "devices/system/cpu"
    cpus = [cpu for cpu, path in cpu_folders(folder) if (path / "thermal_throttle").is_dir()]
    owners = packages(sys, cpus)
    for cpu in first_threads(sys, cpus):
        for file, metric, scale in _CORE:
            path = folder / f"cpu{cpu}/thermal_throttle" / file
            yield path, channel(metric, owners[cpu], scale)
