"""Ratios of devices: links and ports relative to their maximum rate, and free space.

A value is missing if one side is missing or the denominator is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reveal_analyzer.derive.cpu_ratios import ChannelIndices, RatioFormula
from reveal_analyzer.kernels.formulas import Formula, guarded, maximum, read, share
from reveal_contract import catalogue

_Build = Callable[..., Formula]

_PPM = 1e6
_FULL = 0.9  # share in use up to which filling a file system is normal
_BUSY = 50.0  # percent; a GPU that works less may slow its link down


def device_ratios(indices: ChannelIndices) -> Iterator[RatioFormula]:
    """Yield metric, instance and formula of every ratio that these channels allow."""
    for metric, (build, parts) in _FORMULAS.items():
        for first, instance in indices:
            if first == parts[0]:
                channels = [indices.get((part, instance)) for part in parts]
                if (formula := _of(build, channels)) is not None:
                    yield catalogue.find(metric), instance, formula
    yield from _slow_links(indices)


def _of(build: _Build, channels: list[int | None]) -> Formula | None:
    """Return the formula; None if a channel is missing."""
    known = [read(channel) for channel in channels if channel is not None]
    return build(*known) if len(known) == len(channels) else None


def _busier_way(received: Formula, sent: Formula, rate: Formula) -> Formula:
    """Return bytes per second of the busier direction over the rate in bits per second."""
    return share(8.0 * maximum(received, sent), rate)


def _in_use(total: Formula, free: Formula) -> Formula:
    return share(total - free, total)


def _crowding(size: Formula, free: Formula, available: Formula) -> Formula:
    """Return how far the use of a file system exceeds 90 %, computed as df does."""
    used = size - free
    return _beyond(share(used, used + available))


def _crowding_of_files(inodes: Formula, free: Formula) -> Formula:
    return _beyond(_in_use(inodes, free))


def _beyond(used: Formula) -> Formula:
    return maximum(used - _FULL * _PPM, 0.0)


_ROOM = "storage.filesystem."
_PORT = "network.infiniband."
# metric -> how it is computed, and from what of the same instance
_FORMULAS: dict[str, tuple[_Build, tuple[str, ...]]] = {
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


def _slow_links(indices: ChannelIndices) -> Iterator[RatioFormula]:
    """Yield PCIe speed over maximum of busy GPUs, from NVML generations or sysfs speeds."""
    for current in ("gpu.pcie.generation", "gpu.pcie.speed"):
        for metric, instance in indices:
            if metric != current:
                continue
            # sysfs names a link by its address and, after a blank, its card
            card = instance.rpartition(" ")[2]
            channels = [indices[current, instance], indices.get((f"{current}_maximum", instance)),
                      indices.get(("gpu.utilization", card))]  # fmt: skip
            if (formula := _of(_busy_link_speed, channels)) is not None:
                yield catalogue.find("gpu.pcie.speed_share"), instance, formula


def _busy_link_speed(current: Formula, maximum: Formula, utilization: Formula) -> Formula:
    """Return the share of the maximum speed; missing while the GPU is too idle to need it."""
    return guarded(share(current, maximum), utilization, _BUSY)
