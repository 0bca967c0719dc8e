"""Idle states that the kernel selected: the time in each and the number of entries.

Kernel: admin-guide/pm/cpuidle.rst, ``cpuN/cpuidle/stateK``.  Each CPU has about 16 files, so a
host of hundreds of CPUs has thousands.  Therefore all are read in the rare lane and summed over
CPUs by the name of the state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.aggregated import AggregatedSource, number_attributes
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import entries, read_text
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CPU = re.compile(r"cpu(\d+)\Z")
_FILES = (("time", "cpu.idle_state.time", 1000.0), ("usage", "cpu.idle_state.entries", 1.0))
_ABSENT = Unsupported(
    "no CPU has cpuidle states", "use a kernel with cpuidle; most virtual machines have none"
)


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "devices/system/cpu"

    def find() -> dict[Path, Channel]:
        return dict(_files(folder))

    online = partial(read_text, folder / "online")
    return [AggregatedSource(number_attributes("cpuidle", Lane.RARE, find, online, _ABSENT))]


def cpu_folders(folder: Path) -> list[tuple[int, Path]]:
    """Return the CPUs of /sys/devices/system/cpu by number; an empty list if it is missing."""
    named = ((_CPU.match(name), name) for name in entries(folder)[0])
    return sorted((int(number[1]), folder / name) for number, name in named if number)


def _files(folder: Path) -> Iterator[tuple[Path, Channel]]:
    for _, cpu in cpu_folders(folder):
        for state in sorted((cpu / "cpuidle").glob("state*")):
            name = read_text(state / "name")
            for file, metric, scale in _FILES if name else ():
                yield state / file, channel(metric, name, scale)
