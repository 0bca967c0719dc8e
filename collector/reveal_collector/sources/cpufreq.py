"""CPU clocks as cpufreq sees them, and how often cores were throttled for heat.

Kernels 4.15 to 5.18 measure ``scaling_cur_freq`` for 20 ms a CPU on x86: where reading takes
that long, the source is refused rather than let the others wait.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.joined import NumberFiles
from reveal_collector.source import Roots, Source, Unsupported
from reveal_collector.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CPU = re.compile(r"cpu(\d+)\Z")
_FILES = (
    ("cpufreq/scaling_cur_freq", "cpu.frequency", 1000.0),
    ("cpufreq/scaling_max_freq", "cpu.frequency.maximum", 1000.0),
    ("thermal_throttle/core_throttle_count", "cpu.thermal_throttle.core", 1.0),
    ("thermal_throttle/package_throttle_count", "cpu.thermal_throttle.package", 1.0),
)
_LONGEST = 0.005  # seconds for one pass over all CPUs
_REMEDY = "a cpufreq driver; virtual machines mostly have none"


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "devices/system/cpu"
    return [_Clocks("cpufreq", Lane.SLOW, folder, lambda: dict(_files(folder)), _REMEDY)]


def _files(folder: Path) -> Iterator[tuple[Path, Channel]]:
    numbers = sorted(int(named[1]) for path in folder.iterdir() if (named := _CPU.match(path.name)))
    for number in numbers:
        for file, metric, scale in _FILES:
            yield folder / f"cpu{number}" / file, channel(metric, str(number), scale)


class _Clocks(NumberFiles):
    def open(self) -> None:
        super().open()
        start = time.perf_counter()
        self.read()
        took = time.perf_counter() - start
        if took > _LONGEST:
            self.close()
            raise Unsupported(
                f"reading the clock of all CPUs took {took * 1e3:.0f} ms", "Linux 5.19 or later"
            )
