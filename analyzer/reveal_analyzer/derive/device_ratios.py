"""Quotients of devices: links against what they can do, ports against their rate, room left.

A value is missing where a side of it is, and where there is nothing to divide by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reveal_analyzer.derive.cpu_ratios import Computed, Places
from reveal_analyzer.kernels.formulas import Formula, guarded, maximum, read, share
from reveal_contract import catalogue

_Making = Callable[..., Formula]

_PPM = 1e6
_FULL = 0.9  # of a file system: below it, filling up is what file systems are for
_BUSY = 50.0  # percent: a GPU that works less may rest its link


def device_quotients(at: Places) -> Iterator[Computed]:
    """Metric, instance and formula of all that these channels allow."""
    for metric, (making, parts) in _FORMULAS.items():
        for first, instance in at:
            if first == parts[0]:
                places = [at.get((part, instance)) for part in parts]
                if (formula := _of(making, places)) is not None:
                    yield catalogue.find(metric), instance, formula
    yield from _slow_links(at)


def _of(making: _Making, places: list[int | None]) -> Formula | None:
    """None where one of them is not there."""
    there = [read(place) for place in places if place is not None]
    return making(*there) if len(there) == len(places) else None


def _busier_way(received: Formula, sent: Formula, rate: Formula) -> Formula:
    """Bytes a second of the busier direction, of bits a second."""
    return share(8.0 * maximum(received, sent), rate)


def _in_use(total: Formula, free: Formula) -> Formula:
    return share(total - free, total)


def _crowding(size: Formula, free: Formula, available: Formula) -> Formula:
    """How far beyond nine tenths a file system is filled, reckoned as df does."""
    used = size - free
    return _beyond(share(used, used + available))


def _crowding_of_files(inodes: Formula, free: Formula) -> Formula:
    return _beyond(_in_use(inodes, free))


def _beyond(used: Formula) -> Formula:
    return maximum(used - _FULL * _PPM, 0.0)


_ROOM = "storage.filesystem."
_PORT = "network.infiniband."
# metric -> how it is computed, and from what of the same instance
_FORMULAS: dict[str, tuple[_Making, tuple[str, ...]]] = {
    **{
        f"{owner}.pcie.width_share": (share, (f"{owner}.pcie.width", f"{owner}.pcie.width_maximum"))
        for owner in ("gpu", "network", "storage")
    },
    f"{_PORT}utilization": (_busier_way, (f"{_PORT}rx_bytes", f"{_PORT}tx_bytes", f"{_PORT}rate")),
    "memory.swap_used_share": (_in_use, ("memory.swap_total", "memory.swap_free")),
    "memory.zram.compressed_share": (share, ("memory.zram.compressed", "memory.zram.original")),
    f"{_ROOM}crowding": (_crowding, (f"{_ROOM}size", f"{_ROOM}free", f"{_ROOM}available")),
    f"{_ROOM}inode_crowding": (_crowding_of_files, (f"{_ROOM}inodes", f"{_ROOM}inodes_free")),
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
            if (formula := _of(_speed_at_work, places)) is not None:
                yield catalogue.find("gpu.pcie.speed_share"), instance, formula


def _speed_at_work(now: Formula, maximum: Formula, utilization: Formula) -> Formula:
    """Per million of the best; missing while the GPU does not work enough to want it."""
    return guarded(share(now, maximum), utilization, _BUSY)
