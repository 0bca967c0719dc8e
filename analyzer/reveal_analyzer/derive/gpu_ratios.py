"""Quotients of a GPU: how full, how near its limits, how much slower than it can.

Slow figures of one GPU are of one call, quick ones the mean of their ticks: good to a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reveal_analyzer.derive.cpu_ratios import Computed, Places
from reveal_analyzer.kernels.formulas import Formula, guarded, maximum_known, read, share
from reveal_contract import catalogue

_PPM = 1e6
_BUSY_PERCENT = 50  # below, a low clock is how a GPU saves power
_HELD_BACK = tuple(
    f"gpu.throttled_time.{reason}"
    for reason in ("power", "thermal", "sync_boost", "board_limit", "reliability")
)


def gpu_quotients(at: Places) -> Iterator[Computed]:
    """Metric, instance and formula of every quotient of every GPU among the channels."""
    for gpu in dict.fromkeys(name for metric, name in at if metric == "gpu.memory.used"):
        if places := _all(at, ("gpu.memory.used", "gpu.memory.total"), gpu):
            yield catalogue.find("gpu.memory.share"), gpu, share(*map(read, places))
        if places := _all(at, ("gpu.power", "gpu.power.limit"), gpu):
            yield catalogue.find("gpu.power.share"), gpu, share(*map(read, places))
        if places := _all(at, ("gpu.clock.sm", "gpu.clock.maximum", "gpu.utilization"), gpu):
            yield catalogue.find("gpu.clock_deficit"), gpu, _deficit(*places)
        if held := [at[name, gpu] for name in _HELD_BACK if (name, gpu) in at]:
            yield catalogue.find("gpu.throttled_share"), gpu, _longest(held)


def _all(at: Places, metrics: Sequence[str], gpu: str) -> list[int]:
    places = [at[metric, gpu] for metric in metrics if (metric, gpu) in at]
    return places if len(places) == len(metrics) else []


def _deficit(clock: int, most: int, busy: int) -> Formula:
    return guarded(_PPM - share(read(clock), read(most)), read(busy), _BUSY_PERCENT)


def _longest(held: Sequence[int]) -> Formula:
    """Reasons overlap, so that the longest counts and not their sum."""
    return maximum_known(*map(read, held)) / 1e3  # ns/s -> ppm
