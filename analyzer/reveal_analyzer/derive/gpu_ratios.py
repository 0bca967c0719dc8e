"""Ratios of a GPU: memory use, distance to its limits, and lost clock speed.

Slow metrics of a GPU come from one call, fast ones are the mean of their ticks, so a ratio is
accurate to a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reveal_analyzer.derive.cpu_ratios import ChannelIndices, RatioFormula
from reveal_analyzer.kernels.formulas import Formula, guarded, maximum_known, read, share
from reveal_contract import catalogue

_PPM = 1e6
_BUSY_PERCENT = 50  # below, a low clock only saves power
_SLOWDOWN_TIMES = tuple(
    f"gpu.throttled_time.{reason}"
    for reason in ("thermal", "sync_boost", "board_limit", "reliability")
)


def gpu_ratios(indices: ChannelIndices) -> Iterator[RatioFormula]:
    """Yield metric, instance and formula of every ratio of every GPU among the channels."""
    for gpu in dict.fromkeys(name for metric, name in indices if metric == "gpu.memory.used"):
        if channels := _all(indices, ("gpu.memory.used", "gpu.memory.total"), gpu):
            yield catalogue.find("gpu.memory.share"), gpu, share(*map(read, channels))
        if channels := _all(indices, ("gpu.power", "gpu.power.limit"), gpu):
            yield catalogue.find("gpu.power.share"), gpu, share(*map(read, channels))
        if channels := _all(indices, ("gpu.clock.sm", "gpu.clock.maximum", "gpu.utilization"), gpu):
            yield catalogue.find("gpu.clock_deficit"), gpu, _deficit(*channels)
        if slowed := [indices[name, gpu] for name in _SLOWDOWN_TIMES if (name, gpu) in indices]:
            yield catalogue.find("gpu.throttled_share"), gpu, _longest(slowed)


def _all(indices: ChannelIndices, metrics: Sequence[str], gpu: str) -> list[int]:
    channels = [indices[metric, gpu] for metric in metrics if (metric, gpu) in indices]
    return channels if len(channels) == len(metrics) else []


def _deficit(clock: int, most: int, busy: int) -> Formula:
    return guarded(_PPM - share(read(clock), read(most)), read(busy), _BUSY_PERCENT)


def _longest(slowed: Sequence[int]) -> Formula:
    """Return the longest time: reasons overlap, so their sum would count time twice."""
    return maximum_known(*map(read, slowed)) / 1e3  # ns/s -> ppm
