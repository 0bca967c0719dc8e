"""Quotients of devices: links against what they can do, ports against their rate, room left.

A value is missing where a side of it is, and where there is nothing to divide by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.quotients import Computed
from reveal_contract import catalogue

Floats = NDArray[np.float64]
Places = Mapping[tuple[str, str], int]
Formula = Callable[..., float]

_PPM = 1e6
_FULL = 0.9  # of a file system: below it, filling up is what file systems are for
_BUSY = 50.0  # percent: a GPU that works less may rest its link


def device_quotients(at: Places) -> Iterator[Computed]:
    """All that these columns allow: metric, instance and how it is computed from the seconds."""
    for metric, (formula, parts) in _FORMULAS.items():
        for first, instance in at:
            if first == parts[0]:
                places = [at.get((part, instance)) for part in parts]
                if None not in places:
                    yield catalogue.find(metric), instance, _of(formula, places)
    yield from _slow_links(at)


def _of(formula: Formula, places: list[int | None]) -> Callable[[Floats], float]:
    picked = np.array(places, np.intp)
    return lambda seconds: float(formula(*seconds[picked]))


def share(part: float, whole: float) -> float:
    """Per million; missing where the whole is nothing."""
    return _PPM * part / whole if whole > 0 else np.nan


def busier_way(received: float, sent: float, rate: float) -> float:
    """Bytes a second of the busier direction, of bits a second."""
    return share(8.0 * float(np.maximum(received, sent)), rate)


def in_use(total: float, free: float) -> float:
    return share(total - free, total)


def crowding(size: float, free: float, available: float) -> float:
    """How far beyond nine tenths a file system is filled, reckoned as df does."""
    used = size - free
    return _beyond(share(used, used + available))


def crowding_of_files(inodes: float, free: float) -> float:
    return _beyond(in_use(inodes, free))


def _beyond(used: float) -> float:
    return float(np.maximum(0.0, used - _FULL * _PPM))  # unlike max, keeps what is missing


_ROOM = "storage.filesystem."
_PORT = "network.infiniband."
# metric -> how it is computed, and from what of the same instance
_FORMULAS: dict[str, tuple[Formula, tuple[str, ...]]] = {
    **{
        f"{owner}.pcie.width_share": (share, (f"{owner}.pcie.width", f"{owner}.pcie.width_maximum"))
        for owner in ("gpu", "network", "storage")
    },
    f"{_PORT}utilization": (busier_way, (f"{_PORT}rx_bytes", f"{_PORT}tx_bytes", f"{_PORT}rate")),
    "memory.swap_used_share": (in_use, ("memory.swap_total", "memory.swap_free")),
    "memory.zram.compressed_share": (share, ("memory.zram.compressed", "memory.zram.original")),
    f"{_ROOM}crowding": (crowding, (f"{_ROOM}size", f"{_ROOM}free", f"{_ROOM}available")),
    f"{_ROOM}inode_crowding": (crowding_of_files, (f"{_ROOM}inodes", f"{_ROOM}inodes_free")),
}


def _slow_links(at: Places) -> Iterator[Computed]:
    """PCIe speed of working GPUs against the best; by NVML's generations or sysfs's speeds."""
    for now in ("gpu.pcie.generation", "gpu.pcie.speed"):
        for metric, instance in at:
            if metric != now:
                continue
            # sysfs knows a link by its address and, after a blank, the card that is on it
            card = instance.rpartition(" ")[2]
            places = [at[now, instance], at.get((f"{now}_maximum", instance)),
                      at.get(("gpu.utilization", card))]  # fmt: skip
            if None not in places:
                yield catalogue.find("gpu.pcie.speed_share"), instance, _of(speed_at_work, places)


def speed_at_work(now: float, maximum: float, utilization: float) -> float:
    """Per million of the best; missing while the GPU does not work enough to want it."""
    return share(now, maximum) if utilization >= _BUSY else np.nan
